import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, makeToken, type Person } from '../../../test/actors.ts'
import { type Reply, type SendOptions, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

const path = '/api/v1/auth/audit'
const agentBody = { name: 'Harpsichord', config: { model: 'echo', environment_variables: { TOKEN: 'velvet-otter' } } }

let test: TestService
before(async () => void (test = await shareTestService()))
after(() => test.stop())

/** An owner with a key, in an organization whose log holds nothing yet. */
async function newOwner(): Promise<Person & { id: string; key: string }> {
  const person = await makePerson(test)
  return { ...person, ...(await makeKey(test, person, ['admin'])) }
}

async function read(key: string, query: Record<string, string | number> = {}): Promise<any> {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  )
  const { status, body } = await test.send('GET', `${path}?${search}`, { key })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

/** A project and its agent, each step a separate request. */
async function work(options: SendOptions): Promise<{ project: Reply; agent: Reply; agents: string }> {
  const project = await test.send('POST', '/api/v1/projects', {
    ...options,
    body: { name: `p-${Math.random().toString(36).slice(2)}` },
  })
  const agents = `/api/v1/projects/${project.body.id}/agents`
  const agent = await test.send('POST', agents, { ...options, body: agentBody })
  assert.equal(agent.status, 201)
  return { project, agent, agents: `${agents}/${agent.body.id}` }
}

const actionsOf = ({ entries }: any): string[] => entries.map(({ action }: any) => action)

describe('an entry', () => {
  it('an entry says who did what to what, with which credential, from where and in which request', async () => {
    const { id, key, user_id } = await newOwner()
    const { agent, agents } = await work({ key })
    const changed = await test.send('PUT', agents, {
      key,
      headers: { 'user-agent': 'organ-grinder/2' },
      body: { config: { temperature: 0.5, environment_variables: { TOKEN: 'velvet-heron', NEW: 'a' } } },
    })
    const { entries } = await read(key, { request_id: changed.headers.get('x-request-id')! })
    assert.equal(entries.length, 1)
    const { id: entry_id, at, ...entry } = entries[0]
    assert.match(entry_id, /^aud_[0-9a-z]{26}$/)
    assert.ok(Math.abs(Date.now() - Date.parse(at)) < 60_000)
    assert.deepEqual(entry, {
      actor: { id: user_id, name: 'Ada' },
      action: 'agent.updated',
      target: agent.body.id,
      credential: { kind: 'api_key', id },
      ip: '127.0.0.1',
      user_agent: 'organ-grinder/2',
      request_id: changed.headers.get('x-request-id'),
      before: { config: { environment_variables: { TOKEN: '[redacted]' } }, metadata: { version: '1.0.0' } },
      after: {
        config: { environment_variables: { NEW: '[redacted]', TOKEN: '[redacted]' }, temperature: 0.5 },
        metadata: { version: '1.0.1' },
      },
      detail: { project_id: agent.body.project_id },
    })
  })

  it('an entry names a grant of an app, or a session, where that was the credential', async () => {
    const { key, ...person } = await newOwner()
    const { grant_id, token } = await makeToken(test, person, ['admin'])
    const { id: session_id, cookie } = await makeSession(test, person)
    await work({ token })
    await work({ cookie })
    const { entries } = await read(key, { action: 'agent.created' })
    assert.deepEqual(
      entries.map(({ credential }: any) => credential),
      [
        { kind: 'session', id: session_id },
        { kind: 'token', id: grant_id },
      ],
    )
  })

  it('an entry is not written for a request that changed nothing or failed', async () => {
    const { key } = await newOwner()
    const { agents, project } = await work({ key })
    const settled = await test.send('POST', `${agents}/start`, { key })
    assert.equal(settled.body.status, 'running')
    const rename = await test.send('PUT', `/api/v1/projects/${project.body.id}`, {
      key,
      body: { name: project.body.name },
    })
    assert.equal(rename.status, 200)
    const taken = await test.send('POST', `/api/v1/projects/${project.body.id}/agents`, { key, body: agentBody })
    assert.equal(taken.status, 409)
    assert.deepEqual(actionsOf(await read(key)), ['agent.created', 'project.created'])
  })

  it('an entry of a repeated request with an Idempotency-Key is written once', async () => {
    const { key } = await newOwner()
    const options = { key, headers: { 'idempotency-key': 'once' }, body: { name: 'only-once' } }
    for (const status of [201, 201]) assert.equal((await test.send('POST', '/api/v1/projects', options)).status, status)
    assert.deepEqual(actionsOf(await read(key)), ['project.created'])
  })

  it('entries of concurrent changes each show the state that the change found', async () => {
    const { key } = await newOwner()
    const { project } = await work({ key })
    const names = Array.from({ length: 8 }, (_, i) => `name-${i}`)
    const url = `/api/v1/projects/${project.body.id}`
    await Promise.all(names.map((name) => test.send('PUT', url, { key, body: { name } })))
    const { entries } = await read(key, { action: 'project.updated' })
    const moves = new Map<string, string>(entries.map(({ before, after }: any) => [before.name, after.name]))
    // One way through all the names: each change began where the one before it ended.
    const passed: string[] = []
    for (let name = moves.get(project.body.name); name !== undefined; name = moves.get(name)) passed.push(name)
    assert.deepEqual(passed.toSorted(), names)
  })
})

describe('the list', () => {
  it('the list is filtered by each member, and by all of them together', async () => {
    const { key, id, user_id, org_id } = await newOwner()
    const colleague = await makePerson(test, 'member', org_id)
    const theirs = await makeKey(test, colleague, ['write'])
    const { agent, agents } = await work({ key })
    const other = await work({ key: theirs.key })
    await test.send('POST', `${agents}/pause`, { key: theirs.key })

    assert.deepEqual(actionsOf(await read(key, { actor: user_id })), ['agent.created', 'project.created'])
    assert.equal((await read(key, { actor: colleague.user_id })).pagination.total, 3)
    assert.deepEqual(actionsOf(await read(key, { action: 'agent.' })), [
      'agent.paused',
      'agent.created',
      'agent.created',
    ])
    assert.deepEqual(actionsOf(await read(key, { action: 'agent.paused' })), ['agent.paused'])
    assert.deepEqual(actionsOf(await read(key, { target: agent.body.id })), ['agent.paused', 'agent.created'])
    assert.equal((await read(key, { credential_id: id })).pagination.total, 2)
    assert.equal((await read(key, { ip: '127.0.0.1' })).pagination.total, 5)
    assert.equal((await read(key, { ip: '192.0.2.1' })).pagination.total, 0)
    assert.deepEqual(actionsOf(await read(key, { request_id: other.project.headers.get('x-request-id')! })), [
      'project.created',
    ])
    const both = { target: agent.body.id, credential_id: theirs.id, action: 'agent.' }
    assert.deepEqual(actionsOf(await read(key, both)), ['agent.paused'])
  })

  it('the list is of a period: the start belongs to it, the end does not', async () => {
    const { key, org_id } = await newOwner()
    await work({ key })
    await test.sql`update audit set at = case action when 'agent.created' then '2026-03-01T12:00:00.500Z'::timestamptz
      else '2026-03-01T11:00:00Z' end, id = case action when 'agent.created' then id_floor('aud', '2026-03-01T12:00:00.4Z')
      else id_floor('aud', '2026-03-01T11:00:00Z') end where org_id = ${org_id}`
    const within = async (query: Record<string, string>) => actionsOf(await read(key, query))
    assert.deepEqual(await within({ start_time: '2026-03-01T12:00:00.500Z' }), ['agent.created'])
    assert.deepEqual(await within({ start_time: '2026-03-01T12:00:00.501Z' }), [])
    assert.deepEqual(await within({ end_time: '2026-03-01T12:00:00.500Z' }), ['project.created'])
    assert.deepEqual(await within({ start_time: '2026-03-01', end_time: '2026-03-02' }), [
      'agent.created',
      'project.created',
    ])
    assert.deepEqual(await within({ start_time: '0001-01-01', end_time: '9999-12-31' }), [
      'agent.created',
      'project.created',
    ])
    assert.deepEqual(await within({ end_time: '0001-01-02' }), [])
    const empty = await test.send('GET', `${path}?start_time=2026-03-02&end_time=2026-03-01`, { key })
    assert.deepEqual([empty.status, empty.body.error.details[0].field], [400, 'end_time'])
  })

  it('the list has every entry once over all its pages, the newest first', async () => {
    const { key } = await newOwner()
    for (let i = 0; i < 7; i++) await test.send('POST', '/api/v1/projects', { key, body: { name: `page-${i}` } })
    const names: string[] = []
    for (let offset = 0; ; offset += 3) {
      const { entries, pagination } = await read(key, { limit: 3, offset })
      assert.deepEqual(pagination, { total: 7, limit: 3, offset, has_more: offset + entries.length < 7 })
      names.push(...entries.map(({ after: { name } }: any) => name))
      if (!pagination.has_more) break
    }
    assert.deepEqual(names, ['page-6', 'page-5', 'page-4', 'page-3', 'page-2', 'page-1', 'page-0'])
    assert.deepEqual((await read(key, { offset: 2_147_483_647 })).entries, [])
  })

  it('the list of the audit log refuses an unknown action, a page that is too large and a text that is too long', async () => {
    const { key } = await newOwner()
    for (const query of ['action=agents', 'limit=1001', 'limit=0', `target=${'x'.repeat(101)}`]) {
      const { status, body } = await test.send('GET', `${path}?${query}`, { key })
      assert.deepEqual(
        [status, body.error.code, body.error.details[0].field],
        [400, 'validation_error', query.split('=')[0]],
      )
    }
  })
})

describe('what concerns a person rather than an organization', () => {
  it('an entry about a person is in the log of every organization that the person is a member of', async () => {
    const here = await newOwner()
    const elsewhere = await newOwner()
    const member = await makePerson(test, 'viewer', here.org_id)
    const { id: session_id, cookie } = await makeSession(test, member)
    const rename = async (name: string) =>
      assert.equal((await test.send('PUT', '/api/v1/auth/user', { cookie, body: { name } })).status, 200)
    await rename('Grace')
    await test.sql`insert into member (org_id, user_id, role) values (${elsewhere.org_id}, ${member.user_id}, 'member')`
    await rename('Hopper')
    await test.sql`delete from member where org_id = ${elsewhere.org_id} and user_id = ${member.user_id}`
    await rename('Murray')

    const reportOf = async (key: string) =>
      (await read(key, { action: 'user.updated', target: member.user_id })).entries.map(
        ({ before: was, after: is, actor, credential }: any) => [was.name, is.name, actor, credential],
      )
    // The name is the present one wherever the actor is named.
    const who = [
      { id: member.user_id, name: 'Murray' },
      { kind: 'session', id: session_id },
    ]
    assert.deepEqual(await reportOf(here.key), [
      ['Hopper', 'Murray', ...who],
      ['Grace', 'Hopper', ...who],
      ['Ada', 'Grace', ...who],
    ])
    assert.deepEqual(await reportOf(elsewhere.key), [['Grace', 'Hopper', ...who]])
  })

  it('an entry about a person whose credential is a key or token is only in the log of its organization', async () => {
    const here = await newOwner()
    const elsewhere = await newOwner()
    await test.sql`insert into member (org_id, user_id, role) values (${elsewhere.org_id}, ${here.user_id}, 'member')`
    await test.send('PUT', '/api/v1/auth/user', { key: here.key, body: { name: 'Grace' } })
    assert.equal((await read(here.key, { action: 'user.updated' })).pagination.total, 1)
    assert.deepEqual((await read(elsewhere.key)).entries, [])
  })
})

describe('who may read it', () => {
  for (const [role, status] of [
    ['owner', 200],
    ['admin', 200],
    ['member', 403],
    ['viewer', 403],
  ] as const) {
    it(`reading and exporting the audit log as ${role} gets status ${status}`, async () => {
      const { org_id } = await newOwner()
      const { key } = await makeKey(test, await makePerson(test, role, org_id), ['organizations:read'])
      for (const url of [path, `${path}/export`]) assert.equal((await test.send('GET', url, { key })).status, status)
    })
  }

  it('no entry of another organization is readable, whatever is asked for', async () => {
    const mine = await newOwner()
    const theirs = await newOwner()
    const made = await work({ key: theirs.key })
    const { cookie } = await makeSession(test, theirs)
    await test.send('PUT', '/api/v1/auth/user', { cookie, body: { name: 'Canary Islands' } })
    await work({ key: mine.key })
    const canaries = [
      theirs.user_id,
      theirs.org_id,
      theirs.id,
      made.agent.body.id,
      made.project.body.name,
      'Canary Islands',
    ]
    const queries = [
      '',
      `?actor=${theirs.user_id}`,
      `?target=${made.agent.body.id}`,
      `?credential_id=${theirs.id}`,
      '?action=user.',
      '?ip=127.0.0.1',
    ]
    for (const query of queries) {
      for (const url of [path, `${path}/export`]) {
        const { status, body } = await test.send('GET', `${url}${query}`, { key: mine.key })
        assert.equal(status, 200)
        const text = JSON.stringify(body)
        assert.deepEqual(
          canaries.filter((canary) => text.includes(canary)),
          [],
          `${url}${query}`,
        )
      }
    }
    assert.equal((await read(mine.key)).pagination.total, 2)
  })
})
