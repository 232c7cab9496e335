import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import { Task, TaskEventObject, TaskStep } from '#contract/tasks/tasks.ts'
import { eventually, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { check } from '../../http/validation.ts'
import { createAgent, createProject, eventsOfTask, waitForTask } from '../../../test/fixtures.ts'

/** Plays what its task says: see docs/guides/test-models.md. */
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const forever = { delay_ms: 600_000 }
const tool = { tool_calls: [{ name: 'look_up', arguments: { what: 'it' } }] }
const fault = (code: string, more: object = {}) => ({ error: { code, ...more } })

describe('tasks', () => {
  let service: TestService
  let project: string
  before(async () => {
    service = await shareTestService()
    project = (await createProject(service.send, 'tasks')).path
  })
  after(() => service.stop())

  const call = (method: string, path: string, body?: unknown): Promise<Reply> =>
    service.send(method, `${project}${path}`, { body })
  let agents = 0
  const newAgent = async (config: object = {}): Promise<string> => {
    const agent = await createAgent(service.send, project, {
      name: `agent ${++agents}`,
      config: { model: 'builtin/script', ...config },
    })
    return `/agents/${agent.id}`
  }
  const give = (agent: string, input: string, more: object = {}, wait = 0): Promise<Reply> =>
    call('POST', `${agent}/tasks?wait=${wait}`, { input, ...more })
  const read = async (task: { id: string }, wait = 0) => (await call('GET', `/tasks/${task.id}?wait=${wait}`)).body
  const reaches = (task: { id: string }, status: string) => waitForTask(service.send, project, task.id, status)
  const eventsOf = async (task: { id: string }) => await eventsOfTask(service.send, project, task.id)
  const typesOf = async (task: { id: string }) => (await eventsOf(task)).map(({ type }) => type)
  /** Whether each failed step said that it would be repeated. */
  const retriesOf = async (task: { id: string }) =>
    (await eventsOf(task)).filter(({ type }) => type === 'step.failed').map(({ data }) => data.will_retry)
  const stepBegan = (task: { id: string }) => eventually(async () => (await typesOf(task)).includes('step.started'))
  const outbox = async (agent: string) =>
    (
      await service.sql<{
        type: string
        data: any
      }>`select type, data from event where agent_id = ${agent.split('/')[2]!} order by id`
    ).filter(({ type }) => type !== 'agent.launched')

  it('creating a task returns it at once, or finished if the request waits', async () => {
    const agent = await newAgent({ model: 'builtin/echo' })
    const started = await give(agent, 'Hello there', { metadata: { ticket: '1' } })
    assert.equal(started.status, 201)
    assert.deepEqual(
      [started.body.status, started.body.output, started.body.metadata],
      ['queued', null, { ticket: '1' }],
    )
    const done = await give(agent, 'Hello there', {}, 10)
    assert.equal(done.status, 201)
    assert.deepEqual([done.body.status, done.body.output], ['completed', { content: 'Hello there', data: null }])
    const { total, ...usage } = done.body.usage
    assert.deepEqual(total, usage)
    assert.deepEqual(usage, {
      input_tokens: 2,
      output_tokens: 2,
      cached_tokens: 0,
      reasoning_tokens: 0,
      steps: 1,
      tool_calls: 0,
      cost_usd: 0,
      by_model: {
        'builtin/echo': {
          calls: 1,
          input_tokens: 2,
          output_tokens: 2,
          cached_tokens: 0,
          reasoning_tokens: 0,
          cost_usd: 0,
        },
      },
    })
    assert.deepEqual(check(Task, done.body), [])
    assert.equal((await read(started.body, 10)).status, 'completed')
  })

  it('the input of a task may be messages, of which the last one of the user is answered', async () => {
    const agent = await newAgent({ model: 'builtin/echo' })
    const input = [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'two' },
      { role: 'user', content: 'three' },
    ]
    const { body } = await call('POST', `${agent}/tasks?wait=10`, { input })
    assert.deepEqual([body.output.content, body.input], ['three', input])
  })

  it('an unknown tool is reported to the model, and the task continues', async () => {
    const agent = await newAgent({ tools: ['look_up'] })
    const { body } = await give(agent, script({ text: 'Looking.' }, tool, { text: 'It says: {{tool_result}}' }), {}, 10)
    assert.equal(body.status, 'completed')
    assert.equal(body.output.content, 'It says: There is no tool named look_up.')
    assert.deepEqual([body.usage.steps, body.usage.tool_calls], [3, 1])
    const { steps, pagination } = (await call('GET', `/tasks/${body.id}/steps`)).body
    assert.deepEqual(
      steps.map((step: any) => [step.index, step.type, step.status, step.name]),
      [
        [0, 'model_call', 'completed', 'builtin/script'],
        [1, 'tool_call', 'failed', 'look_up'],
        [2, 'model_call', 'completed', 'builtin/script'],
      ],
    )
    assert.equal(pagination.total, 3)
    for (const step of steps) assert.deepEqual(check(TaskStep, step), [])
    const logs = (await call('GET', `${agent}/logs?level=warn`)).body.logs
    assert.ok(logs.some(({ message, context }: any) => message.includes('look_up') && context.task_id === body.id))
  })

  it('events of a task have no gaps, and a page begins after a given sequence number', async () => {
    const agent = await newAgent()
    const { body } = await give(agent, script({ text: 'a' }, tool, { text: 'b' }), {}, 10)
    const events = await eventsOf(body)
    assert.deepEqual(
      events.map(({ sequence }) => sequence),
      events.map((_, i) => i + 1),
    )
    assert.equal(body.last_sequence, events.length)
    for (const event of events) assert.deepEqual(check(TaskEventObject, event), [])
    const rest = await call('GET', `/tasks/${body.id}/events?offset=3&limit=2`)
    assert.deepEqual(
      rest.body.events.map(({ sequence }: any) => sequence),
      [4, 5],
    )
    const { next_cursor: _, ...pagination } = rest.body.pagination
    assert.deepEqual(pagination, { total: events.length, limit: 2, offset: 3, has_more: true })
  })

  it('tasks are listed by project, agent, state and time, newest first', async () => {
    const [one, other] = [await newAgent(), await newAgent()]
    const made = []
    for (const agent of [one, one, other]) made.push((await give(agent, script({ text: 'x' }), {}, 10)).body)
    const list = async (path: string) => (await call('GET', path)).body
    assert.deepEqual(
      (await list(`${one}/tasks`)).tasks.map(({ id }: any) => id),
      [made[1].id, made[0].id],
    )
    const { next_cursor: _, ...pagination } = (await list(`${one}/tasks?sort=created_at&limit=1`)).pagination
    assert.deepEqual(pagination, { total: 2, limit: 1, offset: 0, has_more: true })
    assert.equal((await list(`${one}/tasks?status=queued`)).pagination.total, 0)
    assert.equal((await list(`/tasks?created_after=${made[2].created_at}`)).pagination.total, 1)
    assert.equal(
      (await list(`/tasks?created_after=${made[0].created_at}&created_before=${made[2].created_at}`)).pagination.total,
      2,
    )
  })

  it('tasks are listed by the time of their end, whenever they were created', async () => {
    const agent = await newAgent()
    const made = []
    for (const text of ['a', 'b']) made.push((await give(agent, script({ text }), {}, 10)).body)
    await service.sql`update task set created_at = now() - interval '2 days' where id = ${made[1].id}`
    const idsOf = async (query: string) =>
      (await call('GET', `${agent}/tasks?${query}`)).body.tasks.map(({ id }: any) => id)
    const [first, second] = made.map(({ finished_at }) => finished_at)
    assert.deepEqual(await idsOf(`finished_after=${second}`), [made[1].id])
    assert.deepEqual(await idsOf(`finished_after=${first}&finished_before=${second}`), [made[0].id])
    const { body } = await call('GET', `${agent}/tasks?finished_after=${first}&limit=1`)
    assert.equal(body.pagination.total, 2)
    assert.equal((await call('GET', `${agent}/tasks?finished_after=soon`)).status, 400)
  })

  it('tasks are searched by a part of the input, ignoring case, and by the beginning of the identifier', async () => {
    const agent = await newAgent({ model: 'builtin/echo' })
    const elsewhere = await newAgent({ model: 'builtin/echo' })
    const inputs = [
      'Refund order 10492, "damaged"\n100 % of it',
      [
        { role: 'user', content: 'hello' },
        { role: 'user', content: 'Rückfrage zur ORDER' },
      ],
      `${'x'.repeat(20_000)}needle`,
      'something else',
    ]
    const made: string[] = []
    for (const input of inputs) made.push((await call('POST', `${agent}/tasks`, { input })).body.id)
    await call('POST', `${elsewhere}/tasks`, { input: 'another order' })
    const found = async (search: string, more = ''): Promise<[number[], number]> => {
      const { status, body } = await call('GET', `${agent}/tasks?search=${encodeURIComponent(search)}${more}`)
      assert.equal(status, 200, JSON.stringify(body))
      return [body.tasks.map(({ id }: any) => made.indexOf(id)), body.pagination.total]
    }
    assert.deepEqual(await found('oRDEr'), [[1, 0], 2])
    assert.deepEqual(await found('order', '&sort=created_at&limit=1'), [[0], 2])
    assert.deepEqual(await found('order', '&limit=1&offset=1'), [[0], 2])
    assert.deepEqual(await found('order', '&offset=50'), [[], 2])
    assert.deepEqual(await found('"damaged"\n100 %'), [[0], 1])
    assert.deepEqual(await found('RÜCKFRAGE'), [[1], 1])
    // What stands behind the first 20,000 characters is not looked at, and what JSON is written with is not the input.
    assert.deepEqual(await found('needle'), [[], 0])
    assert.deepEqual(await found('"role"'), [[], 0])
    assert.deepEqual(await found(made[2]!), [[2], 1])
    assert.deepEqual(await found(made[2]!.slice(0, -1)), [[2], 1])
    assert.deepEqual(await found('task_', '&limit=1'), [[3], 4])
    assert.deepEqual(await found('task_%'), [[], 0])
    const { body: all } = await call('GET', '/tasks?search=another%20order')
    assert.equal(all.pagination.total, 1)
    const { body: later } = await call('GET', `${agent}/tasks?search=order&created_after=2100-01-01T00:00:00Z`)
    assert.equal(later.pagination.total, 0)
    const day = `&created_after=${new Date(Date.now() - 86_400_000).toISOString()}`
    assert.deepEqual(await found('order', day), [[1, 0], 2])
    assert.deepEqual(await found('order', '&status=canceled'), [[], 0])
  })

  describe('cancel', () => {
    it('canceling a queued task ends it at once, and it never runs', async () => {
      const agent = await newAgent()
      await call('POST', `${agent}/pause`)
      const { body: task } = await give(agent, script({ text: 'never' }))
      const answer = await call('POST', `/tasks/${task.id}/cancel`, { reason: 'Too late' })
      assert.deepEqual(
        [answer.status, answer.body],
        [200, { message: 'Task canceled', task_id: task.id, status: 'canceled' }],
      )
      assert.equal((await call('POST', `/tasks/${task.id}/cancel`)).status, 200)
      await call('POST', `${agent}/start`)
      await give(agent, script({ text: 'next' }), {}, 10)
      const events = await eventsOf(task)
      assert.deepEqual(
        events.map(({ type }) => type),
        ['task.created', 'task.canceled'],
      )
      assert.deepEqual(
        [events[1]!.data.reason, events[1]!.data.effects, events[1]!.data.uncertain],
        ['Too late', [], []],
      )
    })

    it('canceling a running task aborts it and keeps its partial output', async () => {
      const agent = await newAgent()
      const { body: task } = await give(agent, script({ text: 'As far as this' }, forever))
      await stepBegan(task)
      const answer = await call('POST', `/tasks/${task.id}/cancel`)
      assert.deepEqual([answer.status, answer.body.status], [202, 'running'])
      const canceled = await reaches(task, 'canceled')
      assert.ok(canceled.cancel_requested_at)
      assert.match(canceled.output?.content ?? 'As far', /^As far/)
      const types = await typesOf(task)
      assert.deepEqual([types.at(-1), types.includes('cancel.requested')], ['task.canceled', true])
      assert.deepEqual(await retriesOf(task), [false], 'a canceled task does not repeat its call')
      assert.equal((await call('POST', `/tasks/${task.id}/cancel`)).status, 200)
    })

    it('canceling a finished task is refused with its state', async () => {
      const agent = await newAgent()
      const { body: task } = await give(agent, script({ text: 'done' }), {}, 10)
      const { status, body } = await call('POST', `/tasks/${task.id}/cancel`)
      assert.deepEqual(
        [status, body.error.code, body.error.details],
        [409, 'task_already_finished', { resource_type: 'task', resource_id: task.id, current_status: 'completed' }],
      )
    })

    it('canceling by force ends the lease of a worker that does not confirm', async () => {
      const agent = await newAgent()
      const { body: task } = await give(agent, script(forever))
      await stepBegan(task)
      // As if a worker that has stopped answering held it, by a claim that ours does not know: asked to cancel long ago.
      await service.sql`update task set attempt = attempt + 1, cancel = '{"reason": null, "mode": "graceful", "user_id": "user_x"}', cancel_requested_at = now() - interval '1 minute' where id = ${task.id}`
      const canceled = await reaches(task, 'canceled')
      assert.equal((await eventsOf(canceled)).at(-1)!.data.forced, true)
    })
  })

  describe('an agent', () => {
    it('an agent that is paused ends its step, and continues after it when started', async () => {
      const agent = await newAgent()
      /** A task whose first step lasts so long, and what it is after its agent was paused in that step. */
      const pausedAfter = async (delay_ms: number) => {
        const { body } = await give(agent, script({ delay_ms }, { text: 'first' }, tool, { text: 'second' }))
        await stepBegan(body)
        await call('POST', `${agent}/pause`)
        return read(body, 30)
      }
      let task = await pausedAfter(300)
      // On a busy machine the step may end before the pause comes.
      if (task.status !== 'waiting') {
        await call('POST', `${agent}/start`)
        task = await pausedAfter(10_000)
      }
      assert.deepEqual([task.status, task.wait.reason], ['waiting', 'agent_paused'])
      await call('POST', `${agent}/start`)
      await reaches(task, 'completed')
      const { steps } = (await call('GET', `/tasks/${task.id}/steps`)).body
      assert.deepEqual(
        steps.map(({ attempt }: any) => attempt),
        [1, 1, 1],
        'no step is repeated',
      )
      const types = await typesOf(task)
      assert.ok(types.indexOf('step.completed') < types.indexOf('task.waiting'), 'the step in flight ended')
      assert.ok(types.includes('task.resumed'))
    })

    it('an agent that is paused queues new tasks', async () => {
      const agent = await newAgent()
      await call('POST', `${agent}/pause`)
      const tasks = await Promise.all(['a', 'b', 'c'].map(async (text) => (await give(agent, script({ text }))).body))
      await call('POST', `${agent}/start`)
      for (const task of tasks) assert.equal((await read(task, 10)).status, 'completed')
    })

    it('an agent that is stopped aborts its call and refuses tasks, and repeats the call when started', async () => {
      const agent = await newAgent()
      const { body: task } = await give(agent, script({ text: 'lost' }, { delay_ms: 60_000 }))
      await stepBegan(task)
      await call('POST', `${agent}/stop`)
      const waiting = await read(task, 10)
      assert.deepEqual([waiting.status, waiting.wait.reason], ['waiting', 'agent_stopped'])
      const refused = await give(agent, script({ text: 'no' }))
      assert.deepEqual(
        [refused.status, refused.body.error.code, refused.body.error.details.current_status],
        [409, 'agent_not_running', 'stopped'],
      )
      await call('POST', `${agent}/restart`)
      await eventually(async () => (await typesOf(task)).filter((type) => type === 'step.started').length === 2)
      assert.equal((await call('POST', `/tasks/${task.id}/cancel`)).status, 202)
      await reaches(task, 'canceled')
    })

    it('an agent is deleted with its tasks, and their event streams end as canceled', async () => {
      const agent = await newAgent()
      const { body: task } = await give(agent, script(forever))
      await stepBegan(task)
      const watching = service.send('GET', `${project}/tasks/${task.id}/events/stream`)
      await eventually(
        async () => (await service.sql`select 1 from task where id = ${task.id} and status = 'running'`).length === 1,
      )
      assert.equal((await call('DELETE', agent)).status, 200)
      assert.match((await watching).body, /event: task.canceled/)
      assert.equal((await call('GET', `/tasks/${task.id}`)).status, 404)
      await eventually(async () => (await service.sql`select 1 from task where id = ${task.id}`).length === 0)
      await eventually(
        async () => (await service.sql`select 1 from task_event where task_id = ${task.id}`).length === 0,
      )
    })

    it('an agent that is paused and started again and again loses no task', async () => {
      const agent = await newAgent({ model: 'builtin/echo' })
      const toggling = (async () => {
        for (let i = 0; i < 15; i++) await call('POST', `${agent}/${i % 2 === 0 ? 'pause' : 'start'}`)
        await call('POST', `${agent}/start`)
      })()
      const creating = Array.from({ length: 8 }, async (_, i) => {
        const tasks = []
        for (let n = 0; n < 10; n++) tasks.push((await give(agent, `${i} ${n}`)).body)
        return tasks
      })
      const tasks = (await Promise.all(creating)).flat()
      await toggling
      await eventually(
        async () => (await call('GET', `${agent}/tasks?status=completed`)).body.pagination.total === tasks.length,
      )
      const [row] =
        await service.sql`select count(*) as repeated from task_step where agent_id = ${agent.split('/')[2]!} and attempt > 1`
      assert.deepEqual(row, { repeated: 0 }, 'a pause ends no step')
    })

    it('an agent that is deleted while tasks are created leaves no task behind', async () => {
      // Each time a few tasks come after the deletion has looked for them.
      for (let time = 0; time < 5; time++) {
        const agent = await newAgent({ model: 'builtin/echo' })
        const creating = Array.from({ length: 8 }, async () => {
          const statuses = []
          for (let n = 0; n < 5; n++) statuses.push((await give(agent, 'x')).status)
          return statuses
        })
        await give(agent, 'x')
        const deleted = await call('DELETE', agent)
        const statuses = new Set((await Promise.all(creating)).flat())
        assert.equal(deleted.status, 200)
        assert.deepEqual(
          [...statuses].filter((status) => status !== 201 && status !== 404),
          [],
        )
        await eventually(
          async () => (await service.sql`select 1 from task where agent_id = ${agent.split('/')[2]!}`).length === 0,
        )
      }
      await eventually(
        async () =>
          (await service.sql`select from pgboss.job j where not exists (select from task t where t.job_id = j.id)`)
            .length === 0,
      )
    })

    it('the queue of an agent has a maximum length', async () => {
      const agent = await newAgent()
      await call('POST', `${agent}/pause`)
      const { body: task } = await give(agent, 'x')
      await service.sql`
        insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by)
        select left(id_floor('task', now()), -16) || lpad(n::text, 16, '0'), project_id, agent_id, 0, 'queued', '"x"', 5, usage, created_by
        from task, generate_series(1, ${bounds.queued_tasks - 1}) n where id = ${task.id}`
      const { status, body, headers } = await give(agent, 'x')
      assert.deepEqual([status, body.error.code, headers.get('retry-after')], [429, 'queue_full', '10'])
      assert.equal((await call('DELETE', agent)).status, 200)
    })
  })

  describe('a provider', () => {
    it('a temporary failure of a provider is retried and recorded in the journal', async () => {
      const agent = await newAgent()
      const { body: task } = await give(
        agent,
        script(fault('provider_unavailable', { times: 2, retry_after: 0 }), { text: 'third time' }),
        {},
        20,
      )
      assert.deepEqual([task.status, task.output?.content], ['completed', 'third time'])
      const failures = (await eventsOf(task)).filter(({ type }) => type === 'step.failed')
      assert.deepEqual(
        failures.map(({ data }) => [data.error.code, data.will_retry]),
        [
          ['provider_unavailable', true],
          ['provider_unavailable', true],
        ],
      )
      const { steps } = (await call('GET', `/tasks/${task.id}/steps`)).body
      assert.deepEqual(
        steps.map(({ status, attempt }: any) => [status, attempt]),
        [['completed', 3]],
      )
    })

    it('a Retry-After of a provider is kept without occupying a slot', async () => {
      const agent = await newAgent()
      const { body: task } = await give(
        agent,
        script(fault('provider_rate_limited', { times: 1, retry_after: 3 }), { text: 'after all' }),
      )
      const waiting = await reaches(task, 'waiting')
      assert.equal(waiting.wait.reason, 'provider')
      assert.ok(Date.parse(waiting.wait.until) - Date.parse(waiting.wait.since) >= 3000)
      const [held] = await service.sql`select worker_id from task where id = ${task.id}`
      assert.equal(held!['worker_id'], null)
      const done = await reaches(task, 'completed')
      assert.ok(Date.parse(done.finished_at) >= Date.parse(waiting.wait.until))
    })

    it('a very long Retry-After of a provider is cut to a day', async () => {
      const agent = await newAgent()
      const failing = fault('provider_unavailable', { retry_after: 1e300 })
      const { body: task } = await give(agent, script(failing), {}, 10)
      assert.deepEqual([task.status, task.wait?.reason], ['waiting', 'provider'])
      const seconds = (Date.parse(task.wait.until) - Date.now()) / 1000
      assert.ok(seconds > 86_000 && seconds < 1.2 * 86_400, `${seconds} s`)
      await call('POST', `/tasks/${task.id}/cancel`)
    })

    it('a provider that keeps failing ends the task after five attempts', async () => {
      const agent = await newAgent()
      const { body: task } = await give(agent, script(fault('provider_unavailable', { retry_after: 0 })), {}, 20)
      assert.deepEqual([task.status, task.error.code, task.error.retryable], ['failed', 'provider_unavailable', true])
      const { steps } = (await call('GET', `/tasks/${task.id}/steps`)).body
      assert.deepEqual([steps[0].attempt, task.error.step_id], [5, steps[0].id])
    })

    it('a permanent error of a provider ends the task at once, with its events', async () => {
      const agent = await newAgent()
      const { body: task } = await give(
        agent,
        script(fault('provider_refused_request', { message: 'No: sk-abcdefghijklmnop' })),
        {},
        10,
      )
      assert.deepEqual(
        [task.status, task.error.code, task.error.message],
        ['failed', 'provider_refused_request', 'No: [redacted]'],
      )
      const published = await outbox(agent)
      assert.deepEqual(published.map(({ type }) => type).sort(), ['agent.failed', 'error.occurred'])
      const occurred = published.find(({ type }) => type === 'error.occurred')!
      assert.equal(occurred.data.error.severity, 'medium')
      assert.ok(occurred.data.error.affected_resources.includes(task.id))
      assert.ok(occurred.data.request_id.startsWith('req_'))
    })
  })

  describe('the circuit breaker', () => {
    it('the circuit breaker puts an agent into error when its model does not exist on three tasks in a row', async () => {
      const agent = await newAgent({ model: 'builtin/nothing' })
      for (let i = 0; i < 3; i++) assert.equal((await give(agent, 'x', {}, 10)).body.error.code, 'model_not_found')
      await eventually(async () => (await call('GET', agent)).body.status === 'error')
      assert.equal((await give(agent, 'x')).status, 409)
      const published = await outbox(agent)
      assert.ok(published.some(({ type, data }) => type === 'error.occurred' && data.error.severity === 'high'))
      assert.ok(
        published.some(
          ({ type, data }) => type === 'agent.failed' && data.task === null && data.agent.status === 'error',
        ),
      )
      const { logs } = (await call('GET', `${agent}/logs?level=error`)).body
      assert.match(logs[0].message, /3 tasks in a row/)
      await call('POST', `${agent}/restart`)
      await give(agent, 'x', {}, 10)
      await give(agent, 'x', {}, 10)
      assert.equal((await call('GET', agent)).body.status, 'running', 'the count begins anew')
    })

    it('the circuit breaker counts five failures of any kind, and a success resets the count', async () => {
      const agent = await newAgent()
      const bad = script(fault('provider_refused_request'))
      for (let i = 0; i < 4; i++) await give(agent, bad, {}, 10)
      await give(agent, script({ text: 'good' }), {}, 10)
      for (let i = 0; i < 4; i++) await give(agent, bad, {}, 10)
      assert.equal((await call('GET', agent)).body.status, 'running')
      await give(agent, bad, {}, 10)
      await eventually(async () => (await call('GET', agent)).body.status === 'error')
    })
  })

  describe('bounds', () => {
    it('timeout_seconds ends a running task', async () => {
      const agent = await newAgent()
      const { body: task } = await give(agent, script({ text: 'slow' }, forever), { timeout_seconds: 1 }, 10)
      assert.deepEqual([task.status, task.error.code], ['expired', 'task_timeout'])
      assert.deepEqual(await retriesOf(task), [false], 'a task out of time does not repeat its call')
      assert.equal(
        (await outbox(agent)).some(({ type }) => type === 'agent.failed'),
        true,
      )
    })

    it('queue_ttl_seconds ends a task that did not begin', async () => {
      const agent = await newAgent()
      await call('POST', `${agent}/pause`)
      const { body: task } = await give(agent, 'x', { queue_ttl_seconds: 1 }, 10)
      assert.deepEqual([task.status, task.error.code, task.started_at], ['expired', 'queue_ttl_exceeded', null])
    })

    it('queue_ttl_seconds does not end a task that has begun', async () => {
      const agent = await newAgent()
      const { body: task } = await give(
        agent,
        script({ delay_ms: 1500 }, { text: 'done' }),
        { queue_ttl_seconds: 1 },
        10,
      )
      assert.deepEqual([task.status, task.output?.content], ['completed', 'done'])
    })

    it('a task with run_after does not start before that time', async () => {
      const agent = await newAgent()
      const run_after = new Date(Date.now() + 1500).toISOString()
      const { body: task } = await give(agent, script({ text: 'now' }), { run_after }, 10)
      assert.equal(task.status, 'completed')
      assert.ok(Date.parse(task.started_at) >= Date.parse(run_after))
    })

    it('max_steps ends a task that runs in a loop', async () => {
      const agent = await newAgent({ max_steps: 5 })
      const { body: task } = await give(agent, script({ text: 'again' }, tool), {}, 10)
      assert.deepEqual([task.status, task.error.code, task.output.content], ['failed', 'max_steps_reached', 'again'])
      assert.equal((await call('GET', `/tasks/${task.id}/steps`)).body.pagination.total, 5)
      for (const [code, total] of [
        ['max_steps_reached', 1],
        ['provider_unavailable', 0],
      ] as const)
        assert.equal(
          (await call('GET', `${agent}/tasks?status=failed&error_code=${code}`)).body.pagination.total,
          total,
        )
    })

    it('a wait ends at its timeout with the current state of the task', async () => {
      const agent = await newAgent()
      const began = performance.now()
      const { status, body } = await give(agent, script(forever), {}, 1)
      assert.deepEqual([status, body.status], [201, 'running'])
      assert.ok(performance.now() - began >= 1000)
      await call('POST', `/tasks/${body.id}/cancel`)
    })
  })

  it('the same Idempotency-Key creates a task once and returns it again', async () => {
    const agent = await newAgent()
    const send = () =>
      service.send('POST', `${project}${agent}/tasks?wait=10`, {
        body: { input: script({ text: 'once' }) },
        headers: { 'idempotency-key': 'k1' },
      })
    const [first, second] = [await send(), await send()]
    assert.equal(second.headers.get('idempotency-replayed'), 'true')
    assert.deepEqual([first.body.id, second.body.status], [second.body.id, 'completed'])
    assert.equal((await call('GET', `${agent}/tasks`)).body.pagination.total, 1)
  })
})

describe('a service of one slot', () => {
  let service: TestService
  before(async () => void (service = await startTestService({ CADRE_WORKER_SLOTS: '1', CADRE_TOKENS_PER_HOUR: '100' })))
  after(() => service.stop())

  it('a service with one slot starts tasks by priority, then by age, and calls models only while the credential has tokens', async () => {
    const { send } = service
    const project = await createProject(send, 'one-slot')
    const path = project.path
    const { body: agent } = await send('POST', `${path}/agents`, {
      body: { name: 'a', config: { model: 'builtin/script' } },
    })
    await send('POST', `${path}/agents/${agent.id}/pause`)
    const give = async (priority: number, ...steps: unknown[]) =>
      (await send('POST', `${path}/agents/${agent.id}/tasks`, { body: { input: script(...steps), priority } })).body
    const [low, high, mid, mid2] = [
      await give(1, { text: 'x' }),
      await give(9, { text: 'x' }),
      await give(5, { text: 'x' }),
      await give(5, { text: 'x' }),
    ]
    await send('POST', `${path}/agents/${agent.id}/start`)
    const done = async (task: { id: string }) => (await send('GET', `${path}/tasks/${task.id}?wait=10`)).body
    const ended = await Promise.all([low, high, mid, mid2].map(done))
    const order = ended.toSorted((a, b) => a.started_at.localeCompare(b.started_at)).map(({ id }) => id)
    assert.deepEqual(order, [high.id, mid.id, mid2.id, low.id])

    await give(5, { text: 'x' }, { usage: { input_tokens: 80, output_tokens: 30 } }).then(done)
    const waiting = await give(5, { text: 'later' }).then(done)
    assert.deepEqual([waiting.status, waiting.wait.reason], ['waiting', 'budget'])
    assert.match(waiting.wait.until, /:00:0\d\.\d{3}Z$/, 'the next hour')
    const { logs } = (await send('GET', `${path}/agents/${agent.id}/logs?level=warn`)).body
    assert.match(logs[0].message, /model tokens/)
  })
})
