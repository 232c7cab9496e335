import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { test } from 'node:test'
import { makeTestDatabase, sender } from '../../server/test/harness.ts'
import { databaseEnvironment, refusedStart, startProcess } from '../process.ts'

test('what a first start generated is shown even where that start fails, because no later one shows it', async () => {
  const database = await makeTestDatabase()
  const env = databaseEnvironment(database.connection)
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  try {
    const { code, output } = await refusedStart({ ...env, PORT: String((taken.address() as AddressInfo).port) })
    assert.equal(code, 1)
    assert.match(output, /is in use/)
    const key = /API key +(cadre_[0-9a-f]{32})/.exec(output)?.[1]
    assert.ok(key, output)

    const service = await startProcess(env)
    assert.equal((await sender(service.url, key)('GET', '/api/v1/auth/user')).status, 200)
    assert.doesNotMatch(service.output(), /shown once/)
    await service.end()
  } finally {
    taken.close()
    await database.drop()
  }
})
