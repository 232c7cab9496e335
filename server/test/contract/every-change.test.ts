import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { auditActions } from '#contract/accounts/audit.ts'
import type { CredentialKind, Operation } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { makeKey, makePerson, makeSession, makeToken, type Credential, type Person } from '../actors.ts'
import { Browser } from '../browser.ts'
import { startTestService, type Reply, type TestService } from '../harness.ts'
import { OAuthDriver } from '../oauth.ts'
import { Samples, type Sample } from './samples.ts'

/**
 * Operations without a credential of the service, which are tested by hand below, and operations that need an
 * organization alone on its service, which are tested beside their resource.
 */
const byHand = ['login', 'signup', 'revokeToken', 'drainWorker', 'resumeWorker']

const changing = operations.filter(({ method, unaudited }) => method !== 'GET' && unaudited === undefined)
const kinds: CredentialKind[] = ['api_key', 'token', 'session', 'lease']

interface Entry {
  action: string
  target: string | null
  org_id: string | null
  actor: string | null
  credential_kind: string | null
  credential_id: string | null
  ip: string | null
  user_agent: string | null
  detail: Record<string, unknown>
}

let test: TestService
let samples: Samples
before(async () => {
  test = await startTestService({ CADRE_SIGNUP: 'open' })
  samples = await Samples.make(test)
})
after(() => test.stop())

const entriesOf = ({ headers }: Pick<Reply, 'headers'>) => test.sql<Entry>`
  select action, target, org_id, actor, credential_kind, credential_id, ip, user_agent, detail
  from audit where request_id = ${headers.get('x-request-id')} order by id`

async function organizationsOf({ user_id }: Person): Promise<Set<string | null>> {
  const rows = await test.sql<{ org_id: string }>`select org_id from member where user_id = ${user_id}`
  return new Set(rows.map(({ org_id }) => org_id))
}

async function credentialOf(kind: CredentialKind, person: Person): Promise<{ id: string; options: Credential }> {
  if (kind === 'api_key') {
    const { id, key } = await makeKey(test, person, ['admin'])
    return { id, options: { key } }
  }
  if (kind === 'token') {
    const { grant_id, token } = await makeToken(test, person, ['admin'])
    return { id: grant_id, options: { token } }
  }
  if (kind === 'lease') {
    const options = await samples.credential('lease', person)
    const [work] = await test.sql<{ id: string }>`
      select lease_id as id from work where status = 'claimed' order by claimed_at desc limit 1`
    return { id: work!.id, options }
  }
  const { id, cookie } = await makeSession(test, person)
  return { id, options: { cookie } }
}

const lastOf = (path: string, name: string): string => {
  const parts = path.split('/')
  return parts[parts.indexOf(name) + 1]!
}

/** Undoes what a sample finds already done, so that the operation has something to change. */
const prepare: Record<string, (sample: Sample, person: Person) => Promise<Sample | void>> = {
  async pauseAgent() {
    await test.sql`update agent set status = 'running' where id = ${samples.agent_id}`
  },
  async launchAgent() {
    await test.sql`update agent set status = 'paused', settles_to = null where id = ${samples.agent_id}`
  },
  // A user left without an organization gets a new one, with a separate audit entry there.
  async removeMember({ path }) {
    const { org_id } = await makePerson(test)
    await test.sql`insert into member (org_id, user_id, role) values (${org_id}, ${lastOf(path, 'members')}, 'viewer')`
  },
  async resumeSchedule({ path }) {
    await test.sql`update schedule set status = 'paused', next_run_at = null where id = ${lastOf(path, 'schedules')}`
  },
  async resumeTrigger({ path }) {
    await test.sql`update trigger set status = 'paused' where id = ${lastOf(path, 'triggers')}`
  },
  async approveTool() {
    const paths = { '/a': { get: { operationId: 'a' } } }
    const document = { openapi: '3.0.3', servers: [{ url: 'https://api.test' }], paths }
    const tools = `/api/v1/projects/${samples.project_id}/tools`
    const { body } = await test.send('POST', tools, {
      key: samples.key,
      body: { name: 'drifting', description: 'Sample.', kind: 'openapi', openapi: { document } },
    })
    await test.sql`update tool set pinned = jsonb_set(pinned, '{0,fingerprint}', '"another"') where id = ${body.id}`
    return { path: `${tools}/${body.id}/approve`, body: {} }
  },
  async recoverDeliveries({ path }) {
    const failed = await samples.of(operations.find(({ id }) => id === 'redeliverDelivery')!)
    const hour_ms = 3_600_000
    return {
      path: path.replace(lastOf(path, 'webhooks'), lastOf(failed.path, 'webhooks')),
      body: { since: new Date(Date.now() - hour_ms).toISOString() },
    }
  },
  async deleteSessions(_sample, person) {
    await makeSession(test, person)
  },
}

/** A new user takes actions that would end something the samples need, or that their owner may not take. */
const forSomebodyNew = ['deleteSessions', 'leaveOrganization']

async function change(operation: Operation, kind: CredentialKind) {
  const person = forSomebodyNew.includes(operation.id) ? await makePerson(test) : samples.owner
  const credential = await credentialOf(kind, person)
  const first = await samples.of(operation, person)
  const { path, body } = (await prepare[operation.id]?.(first, person)) ?? first
  const reply = await test.send(operation.method, path, {
    ...credential.options,
    headers: { 'user-agent': `every-change/${operation.id}` },
    ...(body === undefined ? {} : { body }),
  })
  assert.ok(reply.status < 300, `${reply.status} ${JSON.stringify(reply.body)}`)
  return { reply, person, credential_id: credential.id, entries: await entriesOf(reply) }
}

describe('every operation that changes something', () => {
  for (const operation of changing.filter(({ id }) => !byHand.includes(id))) {
    it(`${operation.id} writes one audit entry with user, credential and client`, async () => {
      const kind = kinds.find((one) => operation.credentials.includes(one))!
      const { entries, person, credential_id } = await change(operation, kind)
      const [first, ...others] = entries
      assert.ok(first, 'there is an entry')
      const { action, target, org_id, detail: _, ...who } = first
      assert.ok(org_id)
      // An action on a person has an entry in each organization of that person; all others have one.
      const organizations = new Set(entries.map((entry) => entry.org_id))
      assert.equal(organizations.size, entries.length, JSON.stringify(entries))
      if (others.length > 0) assert.deepEqual(organizations, await organizationsOf(person))
      for (const other of others) assert.deepEqual({ ...other, org_id }, first)
      assert.equal(action, operation.audit)
      assert.deepEqual(who, {
        actor: person.user_id,
        credential_kind: kind,
        credential_id,
        ip: '127.0.0.1',
        user_agent: `every-change/${operation.id}`,
      })
      assert.match(target ?? '', /^(proj_\d+|[a-z]+_[0-9a-z]{26})$/)
    })
  }

  it('the audited operations cover every action, and write no other', async () => {
    const source = new URL('../../src/', import.meta.url)
    const files = (await readdir(source, { recursive: true })).filter((name) => /(?<!\.test)\.ts$/.test(name))
    const texts = await Promise.all(files.map((name) => readFile(new URL(name, source), 'utf8')))
    const unused = Object.keys(auditActions).filter((action) => !texts.some((text) => text.includes(`'${action}'`)))
    assert.deepEqual(unused, [])
    const undeclared = changing.filter(
      ({ id, audit = '' }) => !byHand.includes(id) && !Object.hasOwn(auditActions, audit),
    )
    assert.deepEqual(
      undeclared.map(({ id }) => id),
      [],
      'an operation that changes something says in the contract what it leaves in the audit log: `audit`, or `unaudited` with the reason',
    )
  })
})

describe('resources without audit entries have created_by', () => {
  it('a task, a message and a thread have created_by instead of an audit entry', async () => {
    const { user_id } = samples.owner
    const { id: key_id, key } = await makeKey(test, samples.owner, ['admin'])
    const send = async (id: string) => {
      const operation = operations.find((one) => one.id === id)!
      const { path, body } = await samples.of(operation)
      const reply = await test.send('POST', path, { key, body })
      assert.ok(reply.status < 300, `${id} ${reply.status} ${JSON.stringify(reply.body)}`)
      assert.deepEqual(await entriesOf(reply), [], id)
      return { id: reply.body.id, request_id: reply.headers.get('x-request-id') }
    }
    const [task, message, thread] = [
      await send('createTask'),
      await send('sendTaskMessage'),
      await send('createThread'),
    ]
    assert.deepEqual(await test.sql`select created_by, credential_id, request_id from task where id = ${task.id}`, [
      { created_by: user_id, credential_id: key_id, request_id: task.request_id },
    ])
    for (const table of ['task_message', 'thread']) {
      const id = table === 'thread' ? thread.id : message.id
      const { rows } = await test.sql.query(`select created_by from ${table} where id = $1`, [id])
      assert.deepEqual(rows, [{ created_by: user_id }], table)
    }
  })
})

describe('signing in', () => {
  const address = 'auditor@example.com'
  const password = 'nine brown owls in a barn'

  it('signing in and signing up are audited with the new session', async () => {
    const made = await test.send('POST', '/api/v1/auth/signup', {
      key: null,
      body: { email: address, password, name: 'Auditor' },
    })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    const [created, first] = await entriesOf(made)
    assert.deepEqual([created?.action, created?.target], ['user.created', made.body.user.id])
    assert.deepEqual([first?.action, first?.credential_id], ['user.signed_in', made.body.session.id])

    const reply = await test.send('POST', '/api/v1/auth/login', { key: null, body: { email: address, password } })
    const entries = await entriesOf(reply)
    const { user, session } = reply.body
    assert.deepEqual(
      entries.map(({ action, target, actor, credential_kind, credential_id, ip, detail, org_id }) => ({
        ...{ action, target, actor, credential_kind, credential_id, ip, detail, org_id },
      })),
      [
        {
          action: 'user.signed_in',
          target: user.id,
          actor: user.id,
          credential_kind: 'session',
          credential_id: session.id,
          ip: '127.0.0.1',
          detail: { method: 'password' },
          org_id: first?.org_id,
        },
      ],
    )
  })

  it('signing in with a wrong password is audited with its account, and without one if the address is unknown', async () => {
    const attempt = (email: string) =>
      test.send('POST', '/api/v1/auth/login', { key: null, body: { email, password: 'not the password' } })
    const [known, unknown] = [await attempt(address.toUpperCase()), await attempt('stranger@example.com')]
    assert.deepEqual([known.status, unknown.status], [401, 401])
    const [of] = await test.sql<{ id: string }>`select id from app_user where email = ${address}`
    const reportOf = async (reply: Reply) =>
      (await entriesOf(reply)).map(({ action, target, actor, ip, detail }) => [action, target, actor, ip, detail])
    const detail = { method: 'password' }
    assert.deepEqual(await reportOf(known), [['user.sign_in_failed', of!.id, null, '127.0.0.1', detail]])
    assert.deepEqual(await reportOf(unknown), [['user.sign_in_failed', null, null, '127.0.0.1', detail]])
    const rows = await test.sql`select 1 from audit a where a::text ilike '%stranger@example%'`
    assert.deepEqual(rows, [])
  })

  it('signing in beyond the limit of failures is not audited', async () => {
    const body = { email: 'throttled@example.com', password: 'wrong' }
    const replies: Reply[] = []
    for (let i = 0; i < 6; i++) replies.push(await test.send('POST', '/api/v1/auth/login', { key: null, body }))
    assert.equal(replies.at(-1)!.status, 429)
    assert.deepEqual(await entriesOf(replies.at(-1)!), [])
    assert.equal((await entriesOf(replies.at(-2)!)).length, 1)
  })

  it('a wrong password in a signed-in browser is audited with the session', async () => {
    const session = await makeSession(test, samples.owner)
    const reply = await test.send('PUT', '/api/v1/auth/password', {
      cookie: session.cookie,
      body: { current_password: 'not the password', new_password: 'eight white storks on a lake' },
    })
    assert.equal(reply.status, 400)
    const [entry] = await entriesOf(reply)
    assert.deepEqual(
      [entry?.action, entry?.target, entry?.actor, entry?.credential_id],
      ['user.sign_in_failed', samples.owner.user_id, samples.owner.user_id, session.id],
    )
  })
})

describe('an app', () => {
  it('an app is audited as the actor of its consent, revocation and loss of access by token reuse', async () => {
    const driver = new OAuthDriver(test)
    const client = await driver.client('audited')
    const browser = new Browser(test.url)
    const { access_token } = await driver.tokens(client, {}, { browser })
    const { body: session } = await test.send('GET', '/api/v1/auth/session', { token: access_token })
    const revoked = await driver.revoke(client, access_token)
    assert.equal(revoked.status, 200)
    const { refresh_token } = await driver.tokens(client, {}, { browser })
    await driver.refresh(client, refresh_token)
    const reused = await driver.refresh(client, refresh_token)
    assert.equal(reused.status, 400)

    const [created] = await test.sql<Entry>`
      select actor, org_id, credential_kind from audit where action = 'oauth_grant.created' and target = ${session.id}`
    assert.deepEqual(created, { actor: test.owner.user_id, org_id: test.owner.org_id, credential_kind: 'session' })
    const reportOf = async (reply: Pick<Reply, 'headers'>) =>
      (await entriesOf(reply)).map(({ action, actor, ip, detail }) => [action, actor, ip, detail.reason])
    assert.deepEqual(await reportOf(revoked), [
      ['oauth_grant.revoked', client.client_id, '127.0.0.1', 'revoked_by_client'],
    ])
    assert.deepEqual(await reportOf(reused), [
      ['oauth_grant.revoked', client.client_id, '127.0.0.1', 'refresh_token_reused'],
    ])
  })
})
