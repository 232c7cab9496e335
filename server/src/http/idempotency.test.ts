import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, ownerOf } from '../../test/actors.ts'
import { eventually, sender, startAnother, type Reply, type SendOptions, type TestService } from '../../test/harness.ts'
import { shareTestService } from '../../test/shared-service.ts'
import { sweepIdempotency } from './idempotency.ts'
import { createProject } from '../../test/fixtures.ts'

let test: TestService
let project_id: number
let agents: string
before(async () => {
  test = await shareTestService()
  project_id = (await test.send('POST', '/api/v1/projects', { body: { name: 'idempotent' } })).body.id
  agents = `/api/v1/projects/${project_id}/agents`
})
after(() => test.stop())

let keys = 0
let key: string
beforeEach(() => {
  key = `key ${++keys}`
})

const post = (path: string, body?: unknown, options: SendOptions = {}) =>
  test.send('POST', path, {
    ...options,
    headers: { 'idempotency-key': key, ...options.headers },
    ...(body === undefined ? {} : { body }),
  })
const isReplay = ({ headers }: Reply): boolean => headers.get('idempotency-replayed') === 'true'

async function count(table: 'project' | 'agent' | 'webhook' | 'idempotency'): Promise<number> {
  const { rows } = await test.sql.query(`select count(*)::int as count from ${table}`)
  return rows[0].count
}

describe('a repeated request with an Idempotency-Key', () => {
  it('a repeated request with an Idempotency-Key gets the same answer, marked as replayed, and does its work once (decision D98)', async () => {
    const bodies: [string, unknown, 'project' | 'agent' | 'webhook'][] = [
      ['/api/v1/projects', { name: 'once' }, 'project'],
      [
        agents,
        { name: 'once', config: { environment_variables: { TOKEN: 'canary-env' }, system_prompt: 'Be brief.' } },
        'agent',
      ],
      ['/api/v1/agents', { name: 'launched-once', project_id }, 'agent'],
      [
        '/api/v1/webhooks',
        { url: 'https://hooks.example.com/', events: ['agent.failed'], secret: 'canary-secret' },
        'webhook',
      ],
    ]
    for (const [i, [path, body, table]] of bodies.entries()) {
      const headers = { 'idempotency-key': `${key} ${i}` }
      const before = await count(table)
      const first = await post(path, body, { headers })
      assert.deepEqual([first.status, isReplay(first)], [201, false], path)
      for (let repeat = 0; repeat < 3; repeat++) {
        const again = await post(path, body, { headers })
        assert.deepEqual([again.status, isReplay(again), again.body], [201, true, first.body], path)
        assert.notEqual(again.headers.get('x-request-id'), first.headers.get('x-request-id'))
      }
      assert.equal(await count(table), before + 1)
    }
  })

  it('a repeated request with an Idempotency-Key that gets an error has the id of the first request in header and body', async () => {
    const first = await post(agents, { name: '' })
    assert.equal(first.status, 400)
    assert.equal(first.headers.get('x-request-id'), first.body.error.request_id)
    const again = await post(agents, { name: '' })
    assert.deepEqual([isReplay(again), again.body], [true, first.body])
    assert.equal(again.headers.get('x-request-id'), first.body.error.request_id)
  })

  it('a repeated action with an Idempotency-Key does nothing, even if the agent has changed since', async () => {
    const { body: agent } = await test.send('POST', agents, { body: { name: 'acted-on' } })
    const stopped = await post(`${agents}/${agent.id}/stop`)
    assert.deepEqual([stopped.status, stopped.body.status], [200, 'stopped'])
    assert.equal((await test.send('POST', `${agents}/${agent.id}/start`)).body.status, 'running')
    const again = await post(`${agents}/${agent.id}/stop`)
    assert.deepEqual([again.status, isReplay(again), again.body], [200, true, stopped.body])
    assert.equal((await test.send('GET', `${agents}/${agent.id}`)).body.status, 'running')
  })

  it('any process replays the answer to an Idempotency-Key', async () => {
    const first = await post('/api/v1/projects', { name: 'on-either' })
    const other = await startAnother(test)
    try {
      const again = await sender(other.url, test.owner.api_key)('POST', '/api/v1/projects', {
        body: { name: 'on-either' },
        headers: { 'idempotency-key': key },
      })
      assert.deepEqual([again.status, isReplay(again), again.body], [201, true, first.body])
    } finally {
      await other.stop()
    }
  })

  it('of many concurrent requests with one Idempotency-Key a single one does its work', async () => {
    const before = await count('project')
    const replies = await Promise.all(Array.from({ length: 20 }, () => post('/api/v1/projects', { name: 'at-once' })))
    const made = replies.filter(({ status }) => status === 201)
    assert.equal(made.filter((reply) => !isReplay(reply)).length, 1)
    for (const { body } of made) assert.deepEqual(body, made[0]!.body)
    for (const { status, body } of replies.filter(({ status }) => status !== 201)) {
      assert.deepEqual([status, body.error.code], [409, 'RESOURCE_CONFLICT'])
    }
    assert.equal(await count('project'), before + 1)
    assert.deepEqual((await post('/api/v1/projects', { name: 'at-once' })).body, made[0]!.body)
  })

  it('a repeated request is 409 with Retry-After while the first one runs, in its error format', async () => {
    const waiting = async (): Promise<boolean> => {
      const rows =
        await test.sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into%'`
      return rows.length > 0
    }
    for (const [path, body, table, code] of [
      ['/api/v1/projects', { name: 'slow' }, 'project', 'RESOURCE_CONFLICT'],
      [agents, { name: 'slow' }, 'agent', 'resource_conflict'],
    ] as const) {
      let first!: Promise<Reply>
      await test.sql.begin(async (tx) => {
        await tx.script(`lock table ${table} in exclusive mode`)
        first = post(path, body, { headers: { 'idempotency-key': `${key} ${table}` } })
        await eventually(waiting)
        const second = await post(path, body, { headers: { 'idempotency-key': `${key} ${table}` } })
        assert.deepEqual(
          [
            second.status,
            second.body.error.code,
            second.body.error.details.conflicting_field,
            second.headers.get('retry-after'),
          ],
          [409, code, 'Idempotency-Key', '1'],
        )
      })
      assert.deepEqual([(await first).status, isReplay(await first)], [201, false])
    }
  })
})

describe('an Idempotency-Key', () => {
  it('an Idempotency-Key with another payload is 422 in its error format, and the first answer stays', async () => {
    const first = await post('/api/v1/projects', { name: 'payload' })
    const others: [string, unknown, string][] = [
      ['/api/v1/projects', { name: 'payload-2' }, 'IDEMPOTENCY_KEY_REUSED'],
      ['/api/v1/projects?x=1', { name: 'payload' }, 'IDEMPOTENCY_KEY_REUSED'],
      ['/api/v1/agents', { name: 'payload', project_id }, 'IDEMPOTENCY_KEY_REUSED'],
      [agents, { name: 'payload' }, 'idempotency_key_reused'],
    ]
    for (const [path, body, code] of others) {
      const { status, body: answer } = await post(path, body)
      assert.deepEqual([status, answer.error.code], [422, code])
    }
    assert.deepEqual((await post('/api/v1/projects', { name: 'payload' })).body, first.body)
  })

  it('equal Idempotency-Keys of two credentials are separate', async () => {
    const other = await makeKey(test, ownerOf(test), ['admin'])
    const one = await post('/api/v1/projects', { name: 'own-a' })
    const two = await post('/api/v1/projects', { name: 'own-b' }, { key: other.key })
    assert.deepEqual([one.status, two.status, isReplay(two)], [201, 201, false])
    assert.notEqual(one.body.id, two.body.id)
  })

  it('an Idempotency-Key of a cookie belongs to one organization', async () => {
    const person = await makePerson(test)
    const second = await makePerson(test)
    await test.sql`insert into member (org_id, user_id, role) values (${second.org_id}, ${person.user_id}, 'owner')`
    const { cookie } = await makeSession(test, person)
    const make = (org_id: string) =>
      post('/api/v1/projects', { name: 'both' }, { cookie, headers: { 'x-organization-id': org_id } })
    const [one, two] = [await make(person.org_id), await make(second.org_id)]
    assert.deepEqual([one.status, two.status, isReplay(two)], [201, 201, false])
  })

  it('an Idempotency-Key is 1 to 255 printable ASCII characters', async () => {
    for (const [good, name] of [
      ['x', 'form-1'],
      ['~'.repeat(255), 'form-2'],
      ['a b {"c"}', 'form-3'],
    ] as const) {
      assert.equal((await post('/api/v1/projects', { name }, { headers: { 'idempotency-key': good } })).status, 201)
    }
    for (const bad of ['', 'x'.repeat(256), 'ü', 'a\tb']) {
      const b = await post('/api/v1/projects', { name: 'form-bad' }, { headers: { 'idempotency-key': bad } })
      assert.deepEqual(
        [b.status, b.body.error?.code, b.body.error?.details.field],
        [400, 'INVALID_REQUEST', 'Idempotency-Key'],
        JSON.stringify(bad),
      )
      const a = await post(agents, { name: 'form-bad' }, { headers: { 'idempotency-key': bad } })
      assert.deepEqual(
        [a.status, a.body.error?.code, a.body.error?.details[0].code],
        [400, 'validation_error', 'invalid_format'],
      )
    }
  })

  it('an Idempotency-Key is ignored for GET, PUT and DELETE', async () => {
    const { body: project } = await post('/api/v1/projects', { name: 'ignored-here' })
    const headers = { 'idempotency-key': key }
    assert.equal((await test.send('GET', '/api/v1/hello', { headers })).status, 200)
    assert.equal(
      (await test.send('PUT', `/api/v1/projects/${project.id}`, { headers, body: { name: 'ignored-too' } })).status,
      200,
    )
    assert.equal((await test.send('DELETE', `/api/v1/projects/${project.id}`, { headers })).status, 200)
    assert.equal((await test.send('DELETE', `/api/v1/projects/${project.id}`, { headers })).status, 404)
  })

  it('an Idempotency-Key is ignored when an API key is created, so that no secret is stored', async () => {
    const before = await count('idempotency')
    const made = [
      await post('/api/v1/auth/api-keys', { name: 'k', scopes: ['read'] }),
      await post('/api/v1/auth/api-keys', { name: 'k', scopes: ['read'] }),
    ]
    assert.deepEqual(
      made.map(({ status }) => status),
      [201, 201],
    )
    assert.notEqual(made[0]!.body.key, made[1]!.body.key)
    assert.equal(await count('idempotency'), before)
  })

  it('an Idempotency-Key can be used again after 24 hours, and not earlier', async () => {
    const make = () => post(agents, { name: 'kept-a-day' })
    const first = await make()
    await test.sql`update idempotency set created_at = now() - interval '24 hours' + interval '1 minute' where key = ${key}`
    assert.ok(isReplay(await make()))
    await test.sql`update idempotency set created_at = now() - interval '24 hours' where key = ${key}`
    const later = await make()
    assert.deepEqual([first.status, later.status, isReplay(later)], [201, 409, false])
    await test.sql`update idempotency set created_at = now() - interval '24 hours' where key = ${key}`
    assert.ok((await sweepIdempotency(test.sql)) >= 1)
    assert.deepEqual(await test.sql`select 1 from idempotency where key = ${key}`, [])
  })
})

describe('a stored answer', () => {
  it('a stored 4xx answer is replayed even if the request would succeed now', async () => {
    await test.sql`delete from project where name = 'kept-fault'`
    const taken = await createProject(test.send, 'kept-fault')
    const first = await post('/api/v1/projects', { name: 'kept-fault' })
    assert.deepEqual([first.status, first.body.error.code], [400, 'PROJECT_NAME_TAKEN'])
    await test.send('DELETE', taken.path)
    const again = await post('/api/v1/projects', { name: 'kept-fault' })
    assert.deepEqual([again.status, isReplay(again), again.body], [400, true, first.body])
  })

  for (const [what, status, path, body] of [
    ['an invalid field', 400, '/api/v1/projects', { name: 'x' }],
    ['a missing resource', 404, '/api/v1/agents', { name: 'x', project_id: 999_999 }],
  ] as const) {
    it(`an answer of ${status} is stored: ${what}`, async () => {
      const first = await post(path, body)
      const again = await post(path, body)
      assert.deepEqual(
        [first.status, again.status, isReplay(first), isReplay(again), again.body],
        [status, status, false, true, first.body],
      )
    })
  }

  it('a 401, a 403 for a missing scope and a 400 for malformed JSON are not stored', async () => {
    const { key: reader } = await makeKey(test, ownerOf(test), ['read'])
    const before = await count('idempotency')
    assert.equal((await post('/api/v1/projects', { name: 'not-kept' }, { key: null })).status, 401)
    assert.equal((await post('/api/v1/projects', { name: 'not-kept' }, { key: reader })).status, 403)
    assert.equal((await post('/api/v1/projects', '{')).status, 400)
    assert.equal(await count('idempotency'), before)
    assert.equal((await post('/api/v1/projects', { name: 'not-kept' })).status, 201)
  })

  for (const [status, state] of [
    [500, '22012'],
    [503, '57014'],
  ] as const) {
    it(`an answer of ${status} is not stored, so the same request may succeed later`, async () => {
      const before = await count('project')
      await test.sql.script(`
        create function fail() returns trigger language plpgsql as $$ begin raise exception 'x' using errcode = '${state}'; end $$;
        create trigger fail before insert on event for each row execute function fail();`)
      try {
        assert.equal((await post('/api/v1/projects', { name: `after-${status}` })).status, status)
      } finally {
        await test.sql.script('drop trigger fail on event; drop function fail')
      }
      assert.equal(await count('project'), before)
      const later = await post('/api/v1/projects', { name: `after-${status}` })
      assert.deepEqual([later.status, isReplay(later)], [201, false])
    })
  }

  it('an answer of 429 is not stored', async () => {
    const { id, key: thirsty } = await makeKey(test, ownerOf(test), ['admin'])
    await test.sql`insert into token_usage (subject, hour, tokens) values (${id}, date_trunc('hour', now(), 'UTC'), 1000000)`
    const launch = () => post('/api/v1/agents', { name: 'later', project_id }, { key: thirsty })
    assert.equal((await launch()).status, 429)
    await test.sql`delete from token_usage where subject = ${id}`
    const later = await launch()
    assert.deepEqual([later.status, isReplay(later)], [201, false])
  })

  it('the stored answer to an Idempotency-Key is encrypted', async () => {
    const { status } = await post(agents, {
      name: 'canary-name',
      config: { environment_variables: { A: 'canary-value' }, system_prompt: 'canary-prompt' },
    })
    assert.equal(status, 201)
    const [row] = await test.sql<{
      text: string
      length: number
    }>`select encode(body, 'escape') as text, length(body) as length from idempotency where key = ${key}`
    assert.ok(row!.length > 100)
    assert.equal(row!.text.includes('canary'), false)
  })

  it('a replayed answer still counts as a request, and needs a valid credential', async () => {
    const { id, key: own } = await makeKey(test, ownerOf(test), ['admin'])
    await post('/api/v1/projects', { name: 'counted-too' }, { key: own })
    const again = await post('/api/v1/projects', { name: 'counted-too' }, { key: own })
    assert.ok(isReplay(again))
    const { body } = await test.send('GET', `/api/v1/auth/api-keys/${id}`)
    assert.equal(body.usage_stats.total_requests, 2)
    await test.send('DELETE', `/api/v1/auth/api-keys/${id}`)
    assert.equal((await post('/api/v1/projects', { name: 'counted-too' }, { key: own })).status, 401)
  })
})

describe('the sweep of stored answers', () => {
  it('the sweep keeps an expired answer whose key is used again at the same time', async () => {
    const { sql } = test
    await sql`
      insert into idempotency (subject, key, hash, status, body, created_at)
      values ('user_x', ${key}, ''::bytea, 200, ''::bytea, now() - interval '25 hours')`
    let swept!: Promise<number>
    await sql.begin(async (tx) => {
      await tx`update idempotency set created_at = now() where subject = 'user_x' and key = ${key}`
      swept = sweepIdempotency(sql)
      await eventually(async () => {
        const waiting = await sql`
          select 1 from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%delete from idempotency%'`
        return waiting.length > 0
      })
    })
    assert.equal(await swept, 0)
    assert.equal((await sql`select 1 from idempotency where subject = 'user_x' and key = ${key}`).length, 1)
  })
})
