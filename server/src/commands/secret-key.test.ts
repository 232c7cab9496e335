import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { makeTestDatabase, startOn } from '../../test/harness.ts'
import { databaseUrl } from '../../test/postgres.ts'
import { makeSecrets } from '../platform/crypto/secrets.ts'
import { CommandError } from './command.ts'
import { secretKeyRotate } from './secret-key-rotate.ts'
import { secretKeyStatus } from './secret-key-status.ts'

const oldKey = 'the first secret key, of 32 characters'
const newKey = 'the second secret key, of 32 characters'
const oldKeyId = makeSecrets(oldKey).key_id
const newKeyId = makeSecrets(newKey).key_id

let database: Awaited<ReturnType<typeof makeTestDatabase>>
before(async () => (database = await makeTestDatabase()))
after(() => database.drop())

async function run(command: typeof secretKeyStatus, keys: Record<string, string>) {
  const printed: string[] = []
  const code = await command.run({
    env: { DATABASE_URL: databaseUrl(database.connection), ...keys },
    signal: new AbortController().signal,
    print: (text) => void printed.push(text),
    note: () => {},
    options: { json: false },
    arguments: {},
  })
  return { code, text: printed.join('\n') }
}

/** Starts and stops a service with these keys, like an operator's restart. */
async function restart(keys: Record<string, string>): Promise<void> {
  const service = await startOn(database.connection, keys)
  await service.stop()
}

test('a secret key is replaced in steps, and the commands show what is left to do', async () => {
  const before = { CADRE_SECRET_KEY: oldKey }
  const during = { CADRE_SECRET_KEY: newKey, CADRE_SECRET_KEY_FALLBACK: oldKey }
  const after = { CADRE_SECRET_KEY: newKey }
  const service = await startOn(database.connection, before)
  const { sql, secrets } = service.context
  const [org] = await sql<{ id: string }>`select id from organization`
  await sql`
    insert into webhook (id, org_id, url, events, secret, created_by)
    values ('wh_1', ${org!.id}, 'https://hooks.example.com/', '{agent.failed}', ${secrets.encrypt('webhook-secret', 'canary', 'wh_1')}, 'user_1')`
  await service.stop()

  assert.deepEqual(await run(secretKeyStatus, before), {
    code: 0,
    text: `Secret key        ${oldKeyId}\nFallback          none\nOf the database   ${oldKeyId}\n${oldKeyId}  webhook.secret: 1`,
  })
  // No service has the new key yet, so none could read values that the command encrypts.
  await assert.rejects(run(secretKeyRotate, during), /No service has started with the secret key/)
  await assert.rejects(run(secretKeyRotate, after), (error) => {
    assert.ok(error instanceof CommandError)
    assert.match(error.message, /To replace the key [0-9a-f]{8}, set CADRE_SECRET_KEY_FALLBACK to it/)
    return true
  })

  await restart(during)
  assert.deepEqual(await run(secretKeyStatus, during), {
    code: 3,
    text:
      `Secret key        ${newKeyId}\nFallback          ${oldKeyId}\nOf the database   ${oldKeyId}, being replaced by ${newKeyId}\n` +
      `${oldKeyId}  webhook.secret: 1`,
  })
  const { code, text } = await run(secretKeyRotate, during)
  assert.deepEqual(
    [code, text],
    [0, `Everything is encrypted with the secret key ${newKeyId}. Remove CADRE_SECRET_KEY_FALLBACK.`],
  )
  assert.equal((await run(secretKeyStatus, after)).code, 0)
  await restart(after)
})
