import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestDatabase, sender } from '../../server/test/harness.ts'
import { databaseEnvironment, refusedStart, startProcess } from '../process.ts'

const key = `cadre_${'1a'.repeat(16)}`

test('what a first start generated is shown even where that start fails, because no later one shows it', async () => {
  const database = await makeTestDatabase()
  const env = databaseEnvironment(database.connection)
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  try {
    const { code, output } = await refusedStart({ ...env, PORT: String((taken.address() as AddressInfo).port) })
    assert.equal(code, 1)
    assert.match(output, /is in use/)
    const shown = /API key +(cadre_[0-9a-f]{32})/.exec(output)?.[1]
    assert.ok(shown, output)

    const service = await startProcess(env)
    assert.equal((await sender(service.url, shown)('GET', '/api/v1/auth/user')).status, 200)
    assert.doesNotMatch(service.output(), /shown once/)
    await service.end()
  } finally {
    taken.close()
    await database.drop()
  }
})

test('a start on an embedded database that fails tells its fault alone, and nothing of statements that fail with it', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const port = String((taken.address() as AddressInfo).port)
  const folder = await mkdtemp(join(tmpdir(), 'cadre-start-'))
  try {
    for (const name of ['PORT', 'CADRE_METRICS_PORT']) {
      const { code, output } = await refusedStart({ CADRE_DATA_DIR: folder, CADRE_ADMIN_API_KEY: key, [name]: port })
      const lines = output.split('\n').filter((line) => line.startsWith('{'))
      assert.deepEqual([code, lines], [1, []])
      assert.match(output, new RegExp(`^(Port|The metrics port) ${port} on 127\\.0\\.0\\.1 is in use`, 'm'))
    }
  } finally {
    taken.close()
    await rm(folder, { recursive: true })
  }
})
