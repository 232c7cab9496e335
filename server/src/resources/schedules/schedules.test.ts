import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, ownerOf } from '../../../test/actors.ts'
import { eventually, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { newId } from '../../platform/ids.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let test: TestService
let project: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'schedules' } })
  project = `/api/v1/projects/proj_${body.id}`
})
after(() => test.stop())

let names = 0
/** A new agent that runs. */
async function makeAgent(): Promise<string> {
  const body = await createAgent(test.send, project, { name: `agent-${++names}` })
  return body.id
}
const send = (method: string, path: string, body?: unknown) => test.send(method, `${project}${path}`, { body })
const create = (agent_id: string, more: object = {}): Promise<Reply> =>
  send('POST', '/schedules', { agent_id, name: 'report', cron: '0 0 29 2 *', input: 'Report.', ...more })
async function make(agent_id: string, more: object = {}): Promise<any> {
  const { status, body } = await create(agent_id, more)
  assert.equal(status, 201, JSON.stringify(body))
  return body
}
const read = async (id: string) => (await send('GET', `/schedules/${id}`)).body
const tasksOf = (id: string) =>
  test.sql<{
    id: string
    created_by: string
    status: string
    input: string
    priority: number
    request_id: string | null
  }>`
    select id, created_by, status, input, priority, request_id from task where schedule_id = ${id} order by id`
/** As if the time had come: the clock is the database's, so the due time moves instead. */
const makeDue = (id: string, ago = '1 second') =>
  test.sql`update schedule set next_run_at = now() - ${ago}::interval where id = ${id}`
const moved = (id: string, was: { tasks_created: number; skipped: number } = { tasks_created: 0, skipped: 0 }) =>
  eventually(async () => {
    const row = await read(id)
    return row.tasks_created + row.skipped > was.tasks_created + was.skipped && row
  })
const errorOf = ({ status, body }: Reply) => [status, body.error.code, body.error.details?.[0]?.field]

describe('a schedule', () => {
  it('a schedule is created with its next due time and defaults, read, listed and deleted', async () => {
    const agent_id = await makeAgent()
    const made = await make(agent_id, { name: 'Cafe\u0301', cron: ' 30   7 * *  mon-fri ', time_zone: 'Europe/Berlin' })
    const { id, next_run_at, next_runs, created_at, updated_at, ...rest } = made
    assert.match(id, /^sched_/)
    assert.equal(next_runs[0], next_run_at)
    assert.ok(next_run_at > created_at && updated_at === created_at)
    assert.deepEqual(rest, {
      project_id: project.split('/').at(-1),
      agent_id,
      thread_id: null,
      name: 'Caf\u00e9',
      cron: '30 7 * * mon-fri',
      time_zone: 'Europe/Berlin',
      input: 'Report.',
      priority: 5,
      timeout_seconds: null,
      budget: {},
      metadata: {},
      status: 'active',
      overlap: 'skip',
      catch_up: 'once',
      last_run_at: null,
      last_task_id: null,
      tasks_created: 0,
      skipped: 0,
      last_error: null,
      created_by: test.owner.user_id,
    })
    assert.deepEqual(await read(id), made)
    await make(agent_id)
    const { body: page } = await send('GET', `/schedules?agent_id=${agent_id}&limit=1&offset=1`)
    assert.deepEqual([page.schedules, page.pagination], [[made], { total: 2, limit: 1, offset: 1, has_more: false }])
    assert.equal((await send('GET', `/schedules?agent_id=${agent_id}&status=paused`)).body.pagination.total, 0)

    const { body } = await send('DELETE', `/schedules/${id}`)
    assert.deepEqual(body, { message: 'Schedule deleted', schedule_id: id })
    for (const [method, suffix] of [
      ['GET', ''],
      ['PUT', ''],
      ['DELETE', ''],
      ['POST', '/pause'],
      ['POST', '/trigger'],
    ] as const) {
      const { status, body } = await send(method, `/schedules/${id}${suffix}`, method === 'PUT' ? {} : undefined)
      assert.deepEqual([status, body.error.code], [404, 'schedule_not_found'], suffix)
    }
  })

  it('a schedule with a pattern that is invalid or never due is refused with the field cron', async () => {
    const agent_id = await makeAgent()
    for (const cron of ['0 0 30 2 *', '* * * * * *', 'now', '61 * * * *', '? * * * *'])
      assert.deepEqual(errorOf(await create(agent_id, { cron })), [400, 'validation_error', 'cron'], cron)
    const { id } = await make(agent_id)
    assert.deepEqual(errorOf(await send('PUT', `/schedules/${id}`, { cron: '0 0 31 4 *' })), [
      400,
      'validation_error',
      'cron',
    ])
  })

  it('a schedule with any other invalid member is refused with that field', async () => {
    const agent_id = await makeAgent()
    for (const [field, body] of [
      ['time_zone', { time_zone: 'Mars/Olympus' }],
      ['time_zone', { time_zone: '+02:00' }],
      ['name', { name: '' }],
      ['input', { input: 5 }],
      ['priority', { priority: 10 }],
      ['timeout_seconds', { timeout_seconds: 0 }],
      ['budget.max_tokens', { budget: { max_tokens: 0 } }],
      ['overlap', { overlap: 'kill' }],
      ['catch_up', { catch_up: 'all' }],
      ['metadata', { metadata: 'x' }],
      ['cron', { cron: '*'.repeat(101) }],
    ] as const)
      assert.deepEqual(errorOf(await create(agent_id, body)), [400, 'validation_error', field], JSON.stringify(body))
  })

  it('a schedule of an agent or a thread that does not exist is not created', async () => {
    const agent_id = await makeAgent()
    const missing = await create('agent_00000000000000000000000000')
    assert.deepEqual([missing.status, missing.body.error.code], [404, 'agent_not_found'])
    const thread = newId('thread')
    await test.sql`insert into thread (id, project_id, agent_id, created_by)
      select ${thread}, project_id, id, created_by from agent where id = ${await makeAgent()}`
    for (const thread_id of ['thread_00000000000000000000000000', thread, 'x']) {
      const { status, body } = await create(agent_id, { thread_id })
      assert.deepEqual([status, body.error.code], [404, 'thread_not_found'], thread_id)
    }
  })

  it('a schedule is changed member by member, and a new pattern applies from now on', async () => {
    const made = await make(await makeAgent(), {
      timeout_seconds: 60,
      budget: { max_tokens: 10, max_steps: 2 },
      metadata: { a: 1, b: { c: 2 } },
    })
    const same = (await send('PUT', `/schedules/${made.id}`, { name: 'other', metadata: { a: null, b: { d: 3 } } }))
      .body
    assert.deepEqual(same, { ...made, name: 'other', metadata: { b: { c: 2, d: 3 } }, updated_at: same.updated_at })
    assert.ok(same.updated_at > made.updated_at)

    const changes = {
      cron: '@hourly',
      timeout_seconds: null,
      budget: { max_steps: null },
      overlap: 'queue',
      priority: 9,
    }
    const changed = (await send('PUT', `/schedules/${made.id}`, changes)).body
    assert.deepEqual([changed.timeout_seconds, changed.budget], [null, { max_tokens: 10 }])
    assert.deepEqual([changed.overlap, changed.priority], ['queue', 9])
    assert.ok(Date.parse(changed.next_run_at) <= Date.now() + 3_600_000)
  })

  it('a schedule of another project is 404, and a change requires the scope', async () => {
    const { id } = await make(await makeAgent())
    const other = await createProject(test.send, 'elsewhere')
    assert.equal((await test.send('GET', `${other.path}/schedules/${id}`)).status, 404)
    const { key } = await makeKey(test, ownerOf(test), ['agents:read'])
    const path = `${project}/schedules/${id}`
    assert.equal((await test.send('GET', path, { key })).status, 200)
    assert.equal((await test.send('POST', `${path}/trigger`, { key })).status, 403)
  })
})

describe('a schedule that is due', () => {
  it('a due schedule creates one task with its input, on behalf of its owner', async () => {
    const { id } = await make(await makeAgent(), { priority: 7, cron: '0 0 1 1 *' })
    await makeDue(id)
    const row = await moved(id)
    const tasks = await tasksOf(id)
    assert.equal(tasks.length, 1)
    assert.deepEqual([row.last_task_id, row.tasks_created, row.skipped, row.last_error], [tasks[0]!.id, 1, 0, null])
    assert.ok(Date.parse(row.last_run_at) > 0 && Date.parse(row.next_run_at) > Date.now())
    const { input, priority, created_by, request_id } = tasks[0]!
    assert.deepEqual([input, priority, created_by, request_id], ['Report.', 7, test.owner.user_id, null])
    const { body: task } = await send('GET', `/tasks/${tasks[0]!.id}?wait=10`)
    assert.deepEqual([task.status, task.schedule_id, task.output.content], ['completed', id, 'Report.'])
  })

  it('a due schedule continues its thread', async () => {
    const agent_id = await makeAgent()
    const { body: thread } = await send('POST', '/threads', { agent_id })
    const { id } = await make(agent_id, { thread_id: thread.id, overlap: 'queue' })
    for (const count of [1, 2]) {
      const before = await read(id)
      await makeDue(id)
      assert.equal((await moved(id, before)).tasks_created, count)
    }
    const { body } = await eventually(async () => {
      const page = await send('GET', `/tasks?thread_id=${thread.id}&status=completed`)
      return page.body.pagination.total === 2 && page
    })
    assert.deepEqual(
      body.tasks.map(({ schedule_id }: { schedule_id: string }) => schedule_id),
      [id, id],
    )
  })

  it('a due schedule skips a time while its last task is open, and records it', async () => {
    const agent_id = await makeAgent()
    await send('POST', `/agents/${agent_id}/pause`)
    const { id } = await make(agent_id)
    await makeDue(id)
    const first = await moved(id)
    assert.equal(first.last_error, null)
    await makeDue(id)
    const second = await moved(id, first)
    assert.deepEqual([second.tasks_created, second.skipped, second.last_error.code], [1, 1, 'task_open'])
    await send('PUT', `/schedules/${id}`, { overlap: 'queue' })
    await makeDue(id)
    const third = await moved(id, second)
    assert.deepEqual([third.tasks_created, third.skipped, third.last_error], [2, 1, null])
  })

  it("a due schedule of a stopped agent creates no task, but a warning in the agent's log with the reason", async () => {
    const agent_id = await makeAgent()
    await send('POST', `/agents/${agent_id}/stop`)
    const { id } = await make(agent_id)
    await makeDue(id)
    const { skipped, last_error, next_run_at } = await moved(id)
    assert.deepEqual([skipped, last_error.code], [1, 'agent_not_running'])
    assert.ok(next_run_at > last_error.at)
    assert.deepEqual(await tasksOf(id), [])
    const { body } = await send('GET', `/agents/${agent_id}/logs?level=warn`)
    assert.deepEqual([body.logs.length, body.logs[0].context.schedule_id], [1, id])
    assert.match(body.logs[0].message, /^Schedule report created no task: The agent is stopped/)
  })

  it('a schedule due long ago creates one task, or none if set to skip', async () => {
    const agent_id = await makeAgent()
    const [once, none] = [
      await make(agent_id, { cron: '0 0 * * *' }),
      await make(agent_id, { cron: '0 0 1 1 *', catch_up: 'none' }),
    ]
    for (const { id } of [once, none]) await makeDue(id, '9 days')
    assert.deepEqual([(await moved(once.id)).tasks_created, (await tasksOf(once.id)).length], [1, 1])
    const missed = await moved(none.id)
    assert.deepEqual([missed.tasks_created, missed.last_error.code], [0, 'missed'])
  })

  it('a due schedule whose time zone no longer exists is paused with the reason', async () => {
    const { id } = await make(await makeAgent())
    await test.sql`update schedule set time_zone = 'Atlantis/Capital' where id = ${id}`
    await makeDue(id)
    const { status, next_run_at, last_error } = await moved(id)
    assert.deepEqual([status, next_run_at, last_error.code], ['paused', null, 'refused'])
    assert.deepEqual(errorOf(await send('POST', `/schedules/${id}/resume`)), [400, 'validation_error', 'time_zone'])
  })

  it('a schedule is deleted with its agent or thread', async () => {
    const agent_id = await makeAgent()
    const thread_id = newId('thread')
    await test.sql`insert into thread (id, project_id, agent_id, created_by)
      select ${thread_id}, project_id, id, created_by from agent where id = ${agent_id}`
    const [bound, free] = [await make(agent_id, { thread_id }), await make(agent_id)]
    await test.sql`delete from thread where id = ${thread_id}`
    assert.equal((await send('GET', `/schedules/${bound.id}`)).status, 404)
    assert.equal((await send('DELETE', `/agents/${agent_id}`)).status, 200)
    assert.equal((await send('GET', `/schedules/${free.id}`)).status, 404)
  })
})

describe('pause, resume and trigger', () => {
  it('a paused schedule is not due, and missed times are not made up for', async () => {
    const { id, next_run_at } = await make(await makeAgent(), { cron: '@hourly' })
    for (const _ of [1, 2]) {
      const { body } = await send('POST', `/schedules/${id}/pause`)
      assert.deepEqual(body, { message: 'Schedule paused', schedule_id: id, status: 'paused', next_run_at: null })
    }
    await send('PUT', `/schedules/${id}`, { cron: '0 0 29 2 *' })
    assert.deepEqual([(await read(id)).next_run_at, (await read(id)).status], [null, 'paused'])
    const { body: resumed } = await send('POST', `/schedules/${id}/resume`)
    assert.deepEqual([resumed.status, resumed.message], ['active', 'Schedule resumed'])
    assert.ok(resumed.next_run_at > next_run_at && Date.parse(resumed.next_run_at) > Date.now())
    assert.deepEqual((await send('POST', `/schedules/${id}/resume`)).body, resumed)
    const { tasks_created, skipped } = await read(id)
    assert.deepEqual([tasks_created, skipped], [0, 0])
  })

  it('triggering a schedule creates a task now, also while it is paused or a task is open', async () => {
    const agent_id = await makeAgent()
    await send('POST', `/agents/${agent_id}/pause`)
    const { id, next_run_at } = await make(agent_id)
    const { status, body: task } = await send('POST', `/schedules/${id}/trigger`)
    assert.deepEqual([status, task.schedule_id, task.status, task.input], [201, id, 'queued', 'Report.'])
    assert.equal((await read(id)).next_run_at, next_run_at)
    await send('POST', `/schedules/${id}/pause`)
    const { body: second } = await send('POST', `/schedules/${id}/trigger`)
    const { last_task_id, tasks_created, status: state } = await read(id)
    assert.deepEqual([last_task_id, tasks_created, state], [second.id, 2, 'paused'])
  })

  it('triggering a schedule of a stopped agent is refused', async () => {
    const agent_id = await makeAgent()
    const { id } = await make(agent_id)
    await send('POST', `/agents/${agent_id}/stop`)
    const { status, body } = await send('POST', `/schedules/${id}/trigger`)
    assert.deepEqual(
      [status, body.error.code, body.error.details.current_status],
      [409, 'agent_not_running', 'stopped'],
    )
  })

  it('triggering a schedule with an Idempotency-Key creates one task', async () => {
    const { id } = await make(await makeAgent())
    const headers = { 'idempotency-key': 'once' }
    const trigger = () => test.send('POST', `${project}/schedules/${id}/trigger`, { headers })
    assert.equal((await trigger()).body.id, (await trigger()).body.id)
    assert.equal((await tasksOf(id)).length, 1)
  })
})
