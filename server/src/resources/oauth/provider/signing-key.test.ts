import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startAnother, startTestService, type TestService } from '../../../../test/harness.ts'
import { makeSecrets } from '../../../platform/crypto/secrets.ts'
import { loadSigningKey } from './signing-key.ts'

let service: TestService
before(async () => {
  service = await startTestService()
})
after(() => service.stop())

test('processes with one secret key have one signing key, also when they make it at once', async () => {
  const { sql, secrets } = service.service.context
  const keys = await Promise.all(Array.from({ length: 4 }, () => loadSigningKey(sql, secrets)))
  for (const key of keys) assert.deepEqual(key, keys[0])
})

test('a service whose secret key replaces a lost one serves OAuth all the same', async () => {
  const { sql, secrets } = service.service.context
  const before = await loadSigningKey(sql, secrets)
  const secret_key = 'another secret key, of 32 characters or more'
  const other = await startAnother(service, {
    CADRE_SECRET_KEY: secret_key,
    CADRE_SECRET_KEY_LOST: 'acknowledged',
  })
  try {
    assert.equal((await fetch(`${other.url}/.well-known/oauth-authorization-server`)).status, 200)
  } finally {
    await other.stop()
  }
  const after = await loadSigningKey(sql, makeSecrets(secret_key))
  assert.notDeepEqual(after, before)
})
