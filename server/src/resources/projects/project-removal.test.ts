import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

/** What a request meets, how it names the project, and what it sends. */
type Request = [what: string, path: (id: number) => string, named: (id: number) => unknown, body: object]

const numbered = (id: number) => String(id)
const prefixed = (id: number) => `proj_${id}`
const requests: Request[] = [
  ['an agent', (id) => `/projects/proj_${id}/agents`, prefixed, { name: 'late' }],
  ['an agent of a project named by its number', (id) => `/projects/${id}/agents`, numbered, { name: 'late' }],
  ['a launch', () => '/agents', (id) => id, { name: 'late' }],
  ['a budget', (id) => `/projects/proj_${id}/budgets`, prefixed, { scope: 'project', max_tokens: 1 }],
  [
    'a credential',
    (id) => `/projects/proj_${id}/credentials`,
    prefixed,
    { name: 'LATE', value: 'x', allowed_hosts: ['a.test'] },
  ],
]

/** The answer to a POST that finds the project while it is being deleted, and goes on when it is gone. */
async function whileDeleted([, path, , body]: Request, id: number, headers = {}): Promise<Reply> {
  let reply!: Promise<Reply>
  await test.sql.begin(async (tx) => {
    await tx`delete from project where id = ${id}`
    reply = test.send('POST', `/api/v1${path(id)}`, {
      body: path(id) === '/agents' ? { ...body, project_id: id } : body,
      headers,
    })
    await eventually(async () => {
      const waiting = await test.sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into%'`
      return waiting.length > 0
    })
  })
  return reply
}

async function newProject(): Promise<number> {
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: `p-${++names}-x` } })
  return body.id
}
let names = 0

describe('in a project that is being deleted (decision D24)', () => {
  for (const request of requests) {
    const [what, , named] = request
    for (const headers of [{}, { 'idempotency-key': `late-${what}` }]) {
      const once = Object.keys(headers).length > 0 ? ' with an Idempotency-Key' : ''
      it(`${what}${once} in a project that is being deleted gets the 404 of a missing project`, async () => {
        const id = await newProject()
        const { status, body } = await whileDeleted(request, id, headers)
        assert.deepEqual(
          [status, body.error.code.toLowerCase(), body.error.details],
          [404, 'resource_not_found', { resource_type: 'project', resource_id: named(id) }],
        )
      })
    }
  }

  it('one refused agent does not prevent the creation of agents of other projects', async () => {
    const [deleted, stays] = [await newProject(), await newProject()]
    const late = whileDeleted(requests[0]!, deleted)
    const created = await Promise.all(
      [1, 2, 3].map((n) =>
        test.send('POST', `/api/v1/projects/proj_${stays}/agents`, { body: { name: `agent-${n}` } }),
      ),
    )
    assert.deepEqual([(await late).status, ...created.map(({ status }) => status)], [404, 201, 201, 201])
  })
})

describe('a project that is not there', () => {
  it('the error for a missing project names it as the request did, also when an agent is created in it', async () => {
    for (const named of ['proj_999999', '999999']) {
      const { status, body } = await test.send('POST', `/api/v1/projects/${named}/agents`, { body: { name: 'x' } })
      assert.deepEqual(
        [status, body.error.code, body.error.details],
        [404, 'resource_not_found', { resource_type: 'project', resource_id: named }],
      )
    }
  })
})
