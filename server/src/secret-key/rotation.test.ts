import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createProject } from '../../test/fixtures.ts'
import { eventually, makeTestDatabase, sender, startOn, type Send } from '../../test/harness.ts'
import { secretLabels } from '../platform/crypto/secret-labels.ts'
import { makeSecrets, WrongSecretKeyAtStart } from '../platform/crypto/secrets.ts'
import { newId } from '../platform/ids.ts'
import type { Service } from '../service.ts'
import { loadSigningKey } from '../resources/oauth/provider/signing-key.ts'
import { setDatabaseKey } from './database-key.ts'
import { encryptedColumns } from './encrypted-columns.ts'
import { findKeyUses, reencryptAll } from './rotation.ts'

const oldKey = 'a secret key for tests, 32 characters'
const newKey = 'the secret key that comes after it, of 32 characters'
const oldKeyId = makeSecrets(oldKey).key_id
const newKeyId = makeSecrets(newKey).key_id
const rotating = { CADRE_SECRET_KEY: newKey, CADRE_SECRET_KEY_FALLBACK: oldKey }
const { signal } = new AbortController()

describe('a rotation of the secret key', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let service: Service
  let send: Send
  let api_key: string
  let project: string
  let agent: string
  const keyed = { body: { input: 'once' }, headers: { 'Idempotency-Key': 'once' } }
  let kept_task: string

  const use = (started: Service): void => {
    service = started
    send = sender(started.url, api_key)
  }
  const restart = async (env: Record<string, string>): Promise<void> => {
    await service.stop()
    use(await startOn(database.connection, env))
  }
  const run = async (): Promise<{ status: string }> => {
    const { body: task } = await send('POST', `${project}/agents/${agent}/tasks`, { body: { input: 'hi' } })
    return (await send('GET', `${project}/tasks/${task.id}?wait=20`)).body
  }
  /** Ids of keys that encrypt any value. */
  const keysInUse = async (): Promise<string[]> => {
    const uses = await findKeyUses(service.context.sql, signal)
    return [...new Set(uses.map(({ key_id }) => key_id))].toSorted()
  }

  before(async () => {
    database = await makeTestDatabase()
    const started = await startOn(database.connection)
    api_key = started.first_owner!.api_key
    use(started)
    project = (await createProject(send, 'keys')).path
    const made = await send('POST', `${project}/agents`, {
      body: { name: 'secret', config: { environment_variables: { A: '1' } } },
    })
    agent = made.body.id
    await eventually(async () => (await send('GET', `${project}/agents/${agent}`)).body.status === 'running')
    await send('POST', `${project}/credentials`, {
      body: { name: 'KEY', value: 'canary', allowed_hosts: ['api.example.com'] },
    })
    await send('POST', '/api/v1/webhooks', {
      body: { url: 'https://hooks.example.com/', events: ['agent.failed'], secret: 'canary' },
    })
    await send('POST', '/api/v1/model-providers', {
      body: { name: 'acme', base_url: 'https://models.example.com/v1', api_key: 'sk-canary' },
    })
    const { body: trigger } = await send('POST', `${project}/triggers`, {
      body: { agent_id: agent, name: 'news', source: 'hmac', hmac: { header: 'X-Signature' } },
    })
    await send('POST', `${project}/triggers/${trigger.id}/rotate`, { body: {} })
    kept_task = (await send('POST', `${project}/agents/${agent}/tasks`, keyed)).body.id
    assert.ok(kept_task)
  })
  after(async () => {
    await service.stop()
    await database.drop()
  })

  it('a rotation includes every column with encrypted values', async () => {
    const columns = await service.context.sql<{ name: string }>`
      select c.relname || '.' || a.attname as name from pg_attribute a join pg_class c on c.oid = a.attrelid
      where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
        and a.atttypid = 'bytea'::regtype and not a.attisdropped`
    const plain = [
      'api_key.hash', 'api_key.previous_hash', 'credential_authorization.state_hash', 'delivery_attempt.response_body',
      'door_key.hash', 'door_request.hash', 'file_piece.bytes', 'idempotency.hash', 'invitation.token_hash', 'oauth_artifact.id',
      'session.secret_hash', 'tool_call.lease_hash', 'trigger.address_hash', 'trigger.previous_address_hash',
      'trigger_delivery.body', 'work.lease_hash',
    ] // prettier-ignore
    assert.deepEqual(
      columns.map(({ name }) => name).toSorted(),
      [...plain, ...encryptedColumns.map(({ table, column }) => `${table}.${column}`)].toSorted(),
      'a new column of bytes is encrypted, and in encryptedColumns, or it is not, and in this list',
    )
    const labels = new Set(encryptedColumns.map(({ label }) => label))
    assert.deepEqual([...labels].toSorted(), Object.values(secretLabels).toSorted())
  })

  it('a new key as CADRE_SECRET_KEY_FALLBACK starts no rotation, so all processes can get it first', async () => {
    await restart({ CADRE_SECRET_KEY: oldKey, CADRE_SECRET_KEY_FALLBACK: newKey })
    assert.equal((await run()).status, 'completed')
    assert.deepEqual(await keysInUse(), [oldKeyId])
  })

  it('during a rotation a process decrypts with both keys, encrypts with the new one, and replays stored answers', async () => {
    await restart(rotating)
    assert.equal((await run()).status, 'completed')
    const { body } = await send('GET', `${project}/credentials`)
    assert.equal(body.credentials[0].status, undefined)
    await send('POST', '/api/v1/webhooks', {
      body: { url: 'https://hooks.example.com/', events: ['agent.failed'], secret: 'canary' },
    })
    assert.equal((await send('POST', `${project}/agents/${agent}/tasks`, keyed)).body.id, kept_task)
    assert.deepEqual(await keysInUse(), [oldKeyId, newKeyId].toSorted())
  })

  it('during a rotation a process with only one of the two keys does not start', async () => {
    for (const key of [oldKey, newKey])
      await assert.rejects(startOn(database.connection, { CADRE_SECRET_KEY: key }), WrongSecretKeyAtStart)
  })

  it('a rotation encrypts values of every kind again, in batches, and skips unreadable ones', async () => {
    const { sql } = service.context
    const old = makeSecrets(oldKey)
    const lost = makeSecrets('a key that was lost, of 32 characters or more')
    const [row] = await sql<{ id: string; created_by: string; project_id: number }>`
      select id, created_by, project_id from credential`
    // More than one batch, and one value whose key is lost.
    for (const [at, secrets] of [...Array.from({ length: 201 }, () => old), lost].entries()) {
      const id = newId('cred')
      await sql`
        insert into credential (id, project_id, name, value, created_by)
        values (${id}, ${row!.project_id}, ${`K${at}`}, ${secrets.encrypt(secretLabels.credential, `value ${at}`, id)}, ${row!.created_by})`
    }
    // Values that only other services would make.
    const sealed = (label: string, of: string): Buffer => old.encrypt(label, `${label} of ${of}`, of)
    const [task] = await sql<{ id: string }>`select id from task order by id limit 1`
    await sql`update task_step set turn = ${sealed(secretLabels.model_turn, agent)} where task_id = ${task!.id}`
    const [{ id: webhook }] = (await sql<{ id: string }>`select id from webhook order by id limit 1`) as [
      { id: string },
    ]
    await sql`
      update webhook set previous_secret = ${sealed(secretLabels.webhook, webhook)}, previous_secret_until = now() + interval '1 day',
        push_headers = ${sealed(secretLabels.push_headers, webhook)} where id = ${webhook}`
    await sql`
      insert into credential_oauth (credential_id, settings, client_secret, tokens)
      values (${row!.id}, '{}', ${sealed(secretLabels.client_secret, row!.id)}, ${sealed(secretLabels.tokens, row!.id)})`
    await sql`
      insert into credential_authorization (state_hash, credential_id, user_id, verifier, expires_at)
      values ('\\x00', ${row!.id}, ${row!.created_by}, ${sealed(secretLabels.verifier, row!.id)}, now() + interval '1 hour')`
    await sql`delete from service_secret where name = ${secretLabels.signing_key}`
    await loadSigningKey(sql, old)
    const before = await findKeyUses(sql, signal)
    const total = before.reduce((sum, { values }) => sum + values, 0)

    const done = new Map<string, number>()
    const columns = await reencryptAll(sql, makeSecrets(newKey, oldKey), {
      onColumn: ({ what, encrypted }) => done.set(what, (done.get(what) ?? 0) + encrypted),
      signal,
    })
    for (const [what, encrypted] of done) assert.ok(encrypted > 0, what)
    assert.deepEqual(
      columns.filter(({ unreadable }) => unreadable > 0),
      [{ what: 'credential.value', encrypted: 0, unreadable: 1 }],
    )
    const uses = await findKeyUses(sql, signal)
    assert.deepEqual([...new Set(uses.map(({ key_id }) => key_id))].toSorted(), [lost.key_id, newKeyId].toSorted())
    assert.equal(
      uses.reduce((sum, { values }) => sum + values, 0),
      total,
    )

    const ours = makeSecrets(newKey)
    const rows = await sql<{
      id: string
      name: string
      value: Buffer
    }>`select id, name, value from credential where name ~ '^K[0-9]'`
    for (const { id, name, value } of rows)
      if (name !== 'K201') assert.equal(ours.decrypt(secretLabels.credential, value, id), `value ${name.slice(1)}`)
    const [step] = await sql<{ turn: Buffer }>`select turn from task_step where task_id = ${task!.id}`
    assert.equal(ours.decrypt(secretLabels.model_turn, step!.turn, agent), `model-turn of ${agent}`)
    await sql`delete from credential_oauth`
    await sql`delete from credential where name ~ '^K[0-9]'`
  })

  it('after a rotation a service works with only the new key', async () => {
    await setDatabaseKey(service.context.sql, newKeyId)
    await assert.rejects(startOn(database.connection, { CADRE_SECRET_KEY: oldKey }), WrongSecretKeyAtStart)
    await restart({ CADRE_SECRET_KEY: newKey })
    assert.equal((await run()).status, 'completed')
    assert.equal((await send('POST', `${project}/agents/${agent}/tasks`, keyed)).body.id, kept_task)
    assert.deepEqual(await keysInUse(), [newKeyId])
  })
})
