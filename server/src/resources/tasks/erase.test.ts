import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

const secret = 'the private number 4711-0815'

describe('many tasks at once, and their erasure', () => {
  let test: TestService
  let project: string
  let agent: string
  before(async () => {
    test = await shareTestService()
    project = (await createProject(test.send, 'batch')).path
    agent = await createAgent('builtin/echo')
  })
  after(() => test.stop())

  const call = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> =>
    test.send(method, `${project}${path}`, { body, headers })
  let made = 0
  const createAgent = async (model: string, config: object = {}): Promise<string> => {
    const { body } = await call('POST', '/agents', { name: `agent ${++made}`, config: { model, ...config } })
    await eventually(async () => (await call('GET', `/agents/${body.id}`)).body.status === 'running')
    return body.id
  }
  const ended = (id: string) =>
    eventually(async () => {
      const { body } = await call('GET', `/tasks/${id}?wait=10`)
      return body.status === 'completed' && body
    })

  it('each task of a batch gets its own result, in order, and the valid ones run', async () => {
    const tasks = [
      { input: 'one', metadata: { n: 1 } },
      { input: '' },
      { input: 'three', thread_id: 'thread_00000000000000000000000000' },
      { input: [{ role: 'user', content: [{ type: 'image', url: 'https://example.com/a.png' }] }] },
      { input: 'five', priority: 9, timeout_seconds: 60 },
      { input: 'six', thread_id: null },
      ...['no object', 6, null, [{ input: 'x' }]],
    ]
    const { status, body } = await call('POST', `/agents/${agent}/tasks/batch`, { tasks })
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      body.results.map((one: any) => [one.status, one.task?.input ?? one.error.code]),
      [
        [201, 'one'],
        [400, 'validation_error'],
        [404, 'thread_not_found'],
        [400, 'validation_error'],
        [201, 'five'],
        [201, 'six'],
        ...Array.from({ length: 4 }, () => [400, 'validation_error']),
      ],
    )
    assert.equal(body.results[6].error.message, 'The request is not valid: body must be an object.')
    assert.equal(body.results[1].error.details[0].field, 'input')
    assert.equal((await ended(body.results[0].task.id)).output.content, 'one')
    assert.equal((await ended(body.results[4].task.id)).priority, 9)
  })

  it('a batch with the same Idempotency-Key creates nothing again, and its size is limited', async () => {
    const tasks = Array.from({ length: 50 }, (_, n) => ({ input: `batch ${n}` }))
    const headers = { 'idempotency-key': 'the batch' }
    const [first, again] = [
      await call('POST', `/agents/${agent}/tasks/batch`, { tasks }, headers),
      await call('POST', `/agents/${agent}/tasks/batch`, { tasks }, headers),
    ]
    assert.deepEqual(again.body, first.body)
    const found =
      await test.sql`select from task where project_id = ${Number(project.split('/').at(-1))} and input::text like '"batch %'`
    assert.equal(found.length, 50)
    for (const wrong of [[], Array.from({ length: 1001 }, () => ({ input: 'x' }))])
      assert.equal((await call('POST', `/agents/${agent}/tasks/batch`, { tasks: wrong })).status, 400)
  })

  it('no data of an erased task is left, and the audit log records who erased it', async () => {
    const script = await createAgent('builtin/script', { tools: ['save_file'] })
    await test.send('POST', '/api/v1/webhooks', {
      body: { url: 'https://hooks.example.com/', events: ['task.*'], secret: 'whsec_0123456789abcdef' },
    })
    const input = JSON.stringify([
      { tool_calls: [{ name: 'save_file', arguments: { name: 'a.txt', content: secret } }] },
      { text: secret },
    ])
    const { body: task } = await call('POST', `/agents/${script}/tasks`, { input, metadata: { customer: secret } })
    const done = await ended(task.id)
    assert.equal(done.output.artifacts.length, 1)
    const answer = await call('DELETE', `/tasks/${task.id}`)
    assert.deepEqual([answer.status, answer.body.task_id], [200, task.id])
    assert.equal((await call('GET', `/tasks/${task.id}`)).status, 404)
    assert.equal((await call('DELETE', `/tasks/${task.id}`)).status, 404)
    assert.equal((await call('GET', `/files/${done.output.artifacts[0].file_id}`)).status, 404)
    const tables = [
      'task',
      'task_step',
      'task_event',
      'task_message',
      'approval',
      'agent_log',
      'event',
      'delivery',
      'audit',
      'file',
    ]
    for (const table of tables) {
      const [left] = await test.sql
        .query(`select count(*) as n from ${table} t where t::text like $1`, [`%${secret}%`])
        .then(({ rows }) => rows)
      assert.equal(Number(left.n), 0, table)
    }
    const audit = await test.send('GET', '/api/v1/auth/audit?action=task.erased')
    assert.equal(JSON.stringify(audit.body).includes(task.id), true)
    const events = await test.sql<{ data: any }>`
      select data from event where org_id = ${test.owner.org_id} and data -> 'task' ->> 'id' = ${task.id}`
    assert.ok(events.length > 0 && events.every(({ data }) => data.erased === true && data.output === undefined))
  })

  it('an erased task is also removed from stored responses of Idempotency-Keys', async () => {
    const headers = { 'idempotency-key': 'to be erased' }
    const body = { input: secret, metadata: { case: 'kept' } }
    const made = await call('POST', `/agents/${agent}/tasks`, body, headers)
    const batch = { tasks: [{ input: secret }, { input: 'stays' }] }
    const [erased, stays] = (
      await call('POST', `/agents/${agent}/tasks/batch`, batch, { 'idempotency-key': 'some of it' })
    ).body.results
    for (const { id } of [made.body, erased.task]) {
      await ended(id)
      assert.equal((await call('DELETE', `/tasks/${id}`)).status, 200)
    }
    const again = await call('POST', `/agents/${agent}/tasks`, body, headers)
    assert.deepEqual([again.status, again.body.error.code], [404, 'task_not_found'])
    const { results } = (await call('POST', `/agents/${agent}/tasks/batch`, batch, { 'idempotency-key': 'some of it' }))
      .body
    assert.deepEqual([results[0].task, results[1].task.id], [{ erased: true }, stays.task.id])
    const left = await test.sql`select from task where metadata @> '{"case": "kept"}'`
    assert.equal(left.length, 0)
  })

  it('tasks are found by their metadata with an index, also for erasure', async () => {
    const plan = await test.sql.begin(async (tx) => {
      await tx`set local enable_seqscan = off`
      await tx`set local enable_indexscan = off`
      return tx<{ 'QUERY PLAN': string }>`
        explain select id from task where finished_at is not null and metadata @> '{"customer": "c-17"}'
          and metadata - 'door' @> '{"customer": "c-17"}' and metadata - 'door' <> '{}'`
    })
    assert.match(JSON.stringify(plan), /task_own_metadata/)
  })

  it('an erased task of a protocol leaves no record of its request, and is found by the metadata of the service', async () => {
    const { name } = (await call('GET', `/agents/${agent}`)).body
    const ask = async (content: string): Promise<string> => {
      const body = { model: name, messages: [{ role: 'user', content }], metadata: { customer: 'c-19' } }
      const headers = { 'openai-project': `proj_${project.split('/').at(-1)}` }
      const reply = await test.send('POST', '/v1/chat/completions', { body, headers })
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      return reply.headers.get('cadre-task-id')!
    }
    const ids = [await ask('one'), await ask('two'), await ask('three')]
    const recorded = () => test.sql<{ task_id: string }>`
      select task_id from door_request where task_id = any(${ids}) order by id`
    assert.deepEqual(
      (await recorded()).map(({ task_id }) => task_id),
      ids,
    )
    assert.equal((await call('DELETE', `/tasks/${ids[0]}`)).status, 200)
    assert.deepEqual(
      (await recorded()).map(({ task_id }) => task_id),
      ids.slice(1),
    )
    const other = { door: { kind: 'openai.chat' }, customer: 'c-19' }
    assert.deepEqual((await call('POST', '/tasks/erase', { metadata: other })).body, { erased: 0, remaining: 0 })
    for (const metadata of [{ openai: { customer: 'c-19' }, door: { kind: 'a2a' } }, { door: { kind: 'a2a' } }])
      assert.deepEqual((await call('POST', '/tasks/erase', { metadata })).body, { erased: 0, remaining: 0 })
    const { body } = await call('POST', '/tasks/erase', { metadata: { door: { kind: 'openai.chat' } } })
    assert.deepEqual(body, { erased: 2, remaining: 0 })
    assert.deepEqual(await recorded(), [])
  })

  it('a task that is open, or has an open delegated task, is not erased', async () => {
    const asking = await createAgent('builtin/script', { tools: ['request_input'] })
    const boss = await createAgent('builtin/script', { delegates: [{ agent_id: asking, name: 'asking' }] })
    const asks = JSON.stringify([{ tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }])
    const input = JSON.stringify([{ tool_calls: [{ name: 'delegate_asking', arguments: { input: asks } }] }])
    const { body: task } = await call('POST', `/agents/${boss}/tasks?wait=10`, { input })
    assert.equal((await call('DELETE', `/tasks/${task.id}`)).status, 409)
    const child = await eventually(async () => (await call('GET', `/tasks?parent_task_id=${task.id}`)).body.tasks[0])
    assert.equal((await call('DELETE', `/tasks/${child.id}`)).status, 409)
    await call('POST', `/tasks/${task.id}/cancel`, { mode: 'force' })
    await eventually(async () => (await call('GET', `/tasks/${task.id}`)).body.status === 'canceled')
    assert.equal((await call('DELETE', `/tasks/${task.id}`)).status, 200)
    assert.equal((await call('GET', `/tasks/${child.id}`)).status, 404)
  })

  it('tasks are erased by metadata, only in their project', async () => {
    const metadata = { customer: 'c-17', order: 1 }
    const ids: string[] = []
    for (let i = 0; i < 3; i++)
      ids.push(
        (await call('POST', `/agents/${agent}/tasks`, { input: 'x', metadata: { ...metadata, order: i } })).body.id,
      )
    const other = (await call('POST', `/agents/${agent}/tasks`, { input: 'x', metadata: { customer: 'c-18' } })).body.id
    for (const id of [...ids, other]) await ended(id)
    const elsewhere = (await test.send('POST', '/api/v1/projects', { body: { name: 'erase-elsewhere' } })).body.id
    const none = await test.send('POST', `/api/v1/projects/${elsewhere}/tasks/erase`, {
      body: { metadata: { customer: 'c-17' } },
    })
    assert.deepEqual(none.body, { erased: 0, remaining: 0 })
    // No task has a member that is null, so nothing matches.
    const withNull = await call('POST', '/tasks/erase', { metadata: { customer: 'c-17', order: null } })
    assert.deepEqual(withNull.body, { erased: 0, remaining: 0 })
    const { body } = await call('POST', '/tasks/erase', { metadata: { customer: 'c-17' } })
    assert.deepEqual(body, { erased: 3, remaining: 0 })
    for (const id of ids) assert.equal((await call('GET', `/tasks/${id}`)).status, 404)
    assert.equal((await call('GET', `/tasks/${other}`)).status, 200)
    assert.equal((await call('POST', '/tasks/erase', { metadata: {} })).status, 400)
  })
})
