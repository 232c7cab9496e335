import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { taskActionBounds, TaskMessage } from '#contract/tasks/task-actions.ts'
import { Task } from '#contract/tasks/tasks.ts'
import { eventually, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { check } from '../../http/validation.ts'
import { createAgent, createProject, eventsOfTask, waitForTask } from '../../../test/fixtures.ts'

/** Plays what its task says: see docs/guides/test-models.md. */
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const forever = { delay_ms: 600_000 }
const lookUp = (id: string) => ({ id, name: 'look_up', arguments: { what: id } })
const ask = { tool_calls: [{ name: 'request_input', arguments: { question: 'Which colour?' } }] }
const broken = { error: { code: 'provider_refused_request' } }

let service: TestService
let project: string
before(async () => {
  service = await shareTestService()
  project = (await createProject(service.send, 'task-actions')).path
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
const give = async (agent: string, input: string, more: object = {}, wait = 10) =>
  (await call('POST', `${agent}/tasks?wait=${wait}`, { input, ...more })).body
const read = async (task: { id: string }) => (await call('GET', `/tasks/${task.id}?wait=10`)).body
const eventsOf = async (task: { id: string }) => await eventsOfTask(service.send, project, task.id)
const stepsOf = async (task: { id: string }) => (await call('GET', `/tasks/${task.id}/steps`)).body.steps as any[]
const shape = (steps: any[]) => steps.map(({ index, type, status, name }) => [index, type, status, name])

describe('a message', () => {
  const send = (task: { id: string }, content: string) => call('POST', `/tasks/${task.id}/messages`, { content })

  it('a message is read by the model before its next call', async () => {
    const agent = await newAgent({ model: 'builtin/echo' })
    await call('POST', `${agent}/pause`)
    const task = await give(agent, 'What is asked', {}, 0)
    const { status, body } = await send(task, 'What is asked instead')
    assert.equal(status, 201)
    assert.deepEqual(check(TaskMessage, body), [])
    assert.deepEqual([body.task_id, body.role, body.content], [task.id, 'user', 'What is asked instead'])
    await call('POST', `${agent}/start`)
    const done = await read(task)
    assert.equal(done.output.content, 'What is asked instead')
    const reportOf = (await eventsOf(task)).filter(
      ({ type, data }) => type === 'message.completed' && data.role === 'user',
    )
    assert.deepEqual(
      reportOf.map(({ data }) => [data.message_id, data.content]),
      [[body.id, body.content]],
    )
  })

  it('an answer while the agent is paused is followed by an event that the task waits for its agent', async () => {
    const agent = await newAgent({ tools: ['request_input'] })
    const task = await give(agent, script(ask, { text: 'You said {{tool_result}}' }))
    await call('POST', `${agent}/pause`)
    await send(task, 'blue')
    const waits = (await eventsOf(task)).filter(({ type }) => type === 'task.waiting')
    assert.deepEqual(
      waits.map(({ data }) => data.wait.reason),
      ['input', 'agent_paused'],
    )
    assert.deepEqual((await read(task)).wait, waits[1]!.data.wait)
  })

  it('a message to a task that waits for an answer is the answer', async () => {
    const agent = await newAgent({ tools: ['request_input'] })
    const task = await give(agent, script(ask, { text: 'You said {{tool_result}}' }))
    assert.deepEqual([task.status, task.wait.reason], ['waiting', 'input'])
    assert.equal((await send(task, 'blue')).status, 201)
    const done = await waitForTask(service.send, project, task.id, 'completed')
    assert.equal(done.output.content, 'You said blue')
    const reportOf = (await eventsOf(task)).filter(({ type }) => type === 'message.completed').map(({ data }) => data)
    assert.deepEqual(
      reportOf.map(({ role, content, tool_calls }) => [role, content, tool_calls.length]),
      [
        ['assistant', '', 1],
        ['user', 'blue', 0],
        ['assistant', 'You said blue', 0],
      ],
    )
  })

  it('a task that ends while it waits keeps what its model has written', async () => {
    const agent = await newAgent({ tools: ['request_input'] })
    const canceled = await give(agent, script({ text: 'I look it up. ' }, ask))
    assert.equal(canceled.status, 'waiting')
    await call('POST', `/tasks/${canceled.id}/cancel`)
    const late = await give(agent, script({ text: 'Which one?' }, ask))
    // Its time is over; the sweep that ends it comes every few seconds.
    await service.sql`update task set expires_at = now() - interval '1 second' where id = ${late.id}`
    const expired = await eventually(async () => {
      const { body } = await call('GET', `/tasks/${late.id}`)
      return body.status === 'expired' && body
    })
    const content = 'I look it up. '
    assert.deepEqual((await call('GET', `/tasks/${canceled.id}`)).body.output, { content, data: null })
    assert.deepEqual(expired.output, { content: 'Which one?', data: null })
    const end = (await eventsOf(late)).at(-1)!
    assert.deepEqual([end.type, end.data.output], ['task.expired', expired.output])
  })

  it('a message to a task that has ended is refused', async () => {
    const task = await give(await newAgent({ model: 'builtin/echo' }), 'x')
    const { status, body } = await send(task, 'Wait!')
    assert.deepEqual(
      [status, body.error.code, body.error.details],
      [409, 'task_already_finished', { resource_type: 'task', resource_id: task.id, current_status: 'completed' }],
    )
  })

  it('a message is refused if too many are unread, and none of those is lost', async () => {
    const agent = await newAgent({ model: 'builtin/echo' })
    await call('POST', `${agent}/pause`)
    const task = await give(agent, 'x', {}, 0)
    const limit = taskActionBounds.unread_messages
    // Not all at once: each waits for the lock of the task, and a busy service refuses what has waited too long.
    const first = limit - 5
    for (let i = 0; i < first; i++) assert.equal((await send(task, `message ${i}`)).status, 201)
    const replies = await Promise.all(Array.from({ length: 10 }, (_, i) => send(task, `message ${first + i}`)))
    assert.equal(replies.filter(({ status }) => status === 201).length, 5)
    const refused = replies.filter(({ status }) => status === 429)
    assert.equal(refused.length, 5)
    const { error } = refused[0]!.body
    assert.deepEqual([error.code, error.details.limit], ['queue_full', limit])
    assert.match(error.message, /100 messages that it has not read/)
    await call('POST', `${agent}/start`)
    assert.match((await read(task)).output.content, /^message \d+$/)
    const [row] = await service.sql`
      select count(*) as read, count(distinct position) as positions from task_message where task_id = ${task.id} and before_step = 0`
    assert.deepEqual(row, { read: limit, positions: limit })
  })

  it('a message that is empty or too long is refused', async () => {
    const agent = await newAgent()
    await call('POST', `${agent}/pause`)
    const task = await give(agent, script(forever), {}, 0)
    for (const content of ['', 'x'.repeat(taskActionBounds.message + 1), 7, undefined]) {
      const { status, body } = await call('POST', `/tasks/${task.id}/messages`, { content })
      assert.deepEqual([status, body.error.details[0].field], [400, 'content'])
    }
  })
})

describe('a retry', () => {
  const retry = (task: { id: string }, body: object = {}, query = '?wait=10') =>
    call('POST', `/tasks/${task.id}/retry${query}`, body)

  it('a retry creates a new task with the same input and limits, and does not change the old one', async () => {
    const agent = await newAgent()
    const more = { priority: 7, timeout_seconds: 600, max_attempts: 2, metadata: { ticket: '1' } }
    const old = await give(agent, script({ text: 'again and again' }), more)
    const { status, body: task } = await retry(old)
    assert.equal(status, 201)
    assert.deepEqual(check(Task, task), [])
    assert.notEqual(task.id, old.id)
    for (const name of ['input', 'priority', 'timeout_seconds', 'max_attempts', 'metadata', 'agent_id', 'budget'])
      assert.deepEqual(task[name], old[name], name)
    assert.deepEqual([task.status, task.output.content, task.retried_from], ['completed', 'again and again', old.id])
    assert.deepEqual(await read(old), old)
    const [created] = await eventsOf(task)
    assert.deepEqual([created!.data.retried_from, created!.data.from_step], [old.id, 0])
  })

  it("a retry runs with the agent's current version", async () => {
    const agent = await newAgent()
    const old = await give(agent, 'no script at all')
    assert.deepEqual([old.status, old.agent_version], ['failed', 0])
    await call('PUT', agent, { config: { model: 'builtin/echo' } })
    await eventually(async () => (await call('GET', agent)).body.status === 'running')
    const { body: task } = await retry(old)
    assert.deepEqual([task.status, task.agent_version, task.output?.content], ['completed', 1, 'no script at all'])
  })

  it('a retry from a step keeps the earlier steps and repeats none of them', async () => {
    const agent = await newAgent()
    const round = { tool_calls: [lookUp('a'), lookUp('b')] }
    const old = await give(agent, script(round, { text: 'last' }))
    assert.deepEqual(shape(await stepsOf(old)), [
      [0, 'model_call', 'completed', 'builtin/script'],
      [1, 'tool_call', 'failed', 'look_up'],
      [2, 'tool_call', 'failed', 'look_up'],
      [3, 'model_call', 'completed', 'builtin/script'],
    ])
    const { body: task } = await retry(old, { from_step: 2 })
    assert.deepEqual([task.status, task.output.content], ['completed', 'last'])
    const [before, after] = [await stepsOf(old), await stepsOf(task)]
    assert.deepEqual(shape(after), shape(before))
    assert.deepEqual(
      after.map(({ started_at }: any, i: number) => started_at === before[i].started_at),
      [true, true, false, false],
    )
    assert.deepEqual(after[2].input.tool_call_id, 'b', 'the call that was missing')
    assert.deepEqual([task.usage.steps, task.usage.tool_calls], [2, 1], 'what is kept costs nothing')
    const started = (await eventsOf(task)).filter(({ type }) => type === 'tool.called' || type === 'step.started')
    assert.ok(started.every(({ data }) => data.index >= 2))
  })

  it('a retry of a failed task continues where it failed', async () => {
    const agent = await newAgent()
    const old = await give(agent, script({ tool_calls: [lookUp('a')] }, broken))
    assert.deepEqual([old.status, (await stepsOf(old)).length], ['failed', 3])
    for (const from_step of [2, 3]) {
      const { body: task } = await retry(old, { from_step })
      assert.deepEqual([task.status, task.error.code], ['failed', 'provider_refused_request'])
      const steps = await stepsOf(task)
      assert.deepEqual(shape(steps), shape(await stepsOf(old)))
      assert.equal(steps[2].attempt, 1)
    }
  })

  it('a retry keeps the messages that were read before its first step', async () => {
    const agent = await newAgent({ model: 'builtin/echo' })
    await call('POST', `${agent}/pause`)
    const old = await give(agent, 'first', {}, 0)
    await call('POST', `/tasks/${old.id}/messages`, { content: 'second' })
    await call('POST', `${agent}/start`)
    assert.equal((await read(old)).output.content, 'second')
    assert.equal((await retry(old)).body.output.content, 'second')
  })

  it('a retry requires a finished task and an existing step', async () => {
    const agent = await newAgent()
    const running = await give(agent, script(forever), {}, 0)
    const open = await retry(running)
    assert.equal(open.status, 409)
    assert.equal(open.body.error.code, 'resource_conflict')
    const { status } = (await call('GET', `/tasks/${running.id}`)).body
    assert.deepEqual(
      { ...open.body.error.details, conflicting_value: status },
      { resource_type: 'task', resource_id: running.id, conflicting_field: 'status', conflicting_value: status },
    )
    await call('POST', `/tasks/${running.id}/cancel`)
    const done = await give(agent, script({ text: 'x' }))
    const beyond = await retry(done, { from_step: 2 })
    const [issue] = beyond.body.error.details
    assert.deepEqual(
      [beyond.status, issue.field, issue.code, issue.min, issue.max],
      [400, 'from_step', 'out_of_range', 0, 1],
    )
    assert.equal((await retry(done, { from_step: -1 })).status, 400)
    assert.equal((await retry(done, { from_step: 1 })).body.output.content, 'x', 'behind the last step')
  })

  it('a retry requires an agent that accepts tasks', async () => {
    const agent = await newAgent()
    const old = await give(agent, script({ text: 'x' }))
    await call('POST', `${agent}/stop`)
    const { status, body } = await retry(old)
    assert.deepEqual(
      [status, body.error.code, body.error.details.current_status],
      [409, 'agent_not_running', 'stopped'],
    )
  })

  it('a retry runs once for an Idempotency-Key, and is streamed if requested', async () => {
    const agent = await newAgent()
    const old = await give(agent, script({ text: 'x' }))
    const path = `${project}/tasks/${old.id}/retry?wait=10`
    const send = () => service.send('POST', path, { headers: { 'idempotency-key': 'retry-1' } })
    const [first, second] = [await send(), await send()]
    assert.deepEqual([first.status, second.body.id], [201, first.body.id])
    const stream = await service.send('POST', path, { headers: { accept: 'text/event-stream' } })
    assert.deepEqual([stream.status, stream.headers.get('content-type')], [201, 'text/event-stream; charset=utf-8'])
    assert.match(stream.body, /event: task.snapshot[\s\S]*event: task.completed/)
  })
})

describe('a wait', () => {
  it('a read right after an answer returns the next question, not the answered one', async () => {
    const agent = await newAgent({ tools: ['request_input'] })
    const again = { tool_calls: [{ name: 'request_input', arguments: { question: 'And now?' } }] }
    for (let round = 0; round < 5; round += 1) {
      const task = await give(agent, script(ask, again, { text: 'thanks' }))
      await call('POST', `/tasks/${task.id}/messages`, { content: 'blue' })
      const next = await read(task)
      assert.deepEqual([next.status, next.wait?.reason], ['waiting', 'input'])
      const open = (await stepsOf(task)).filter(({ type, status }) => type === 'wait' && status === 'started')
      assert.equal(open.length, 1, 'it waits for the second answer')
      assert.equal(
        (await stepsOf(task)).filter(({ type, status }) => type === 'wait' && status === 'completed').length,
        1,
      )
      await call('POST', `/tasks/${task.id}/messages`, { content: 'green' })
      assert.equal((await read(task)).status, 'completed')
    }
  })
})

describe('a task that is canceled by force', () => {
  it('a task that is canceled by force leaves no running step, and its partial stream is discarded', async () => {
    const agent = await newAgent()
    const task = await give(agent, script({ text: 'half' }, forever), {}, 0)
    await eventually(async () => (await stepsOf(task)).some(({ status }) => status === 'started'))
    assert.equal((await call('POST', `/tasks/${task.id}/cancel`, { mode: 'force' })).status, 200)
    assert.deepEqual(
      (await stepsOf(task)).map(({ status, finished_at }) => [status, finished_at !== null]),
      [['failed', true]],
    )
    const types = (await eventsOf(task)).map(({ type }) => type)
    assert.deepEqual(types.slice(-3), ['message.discarded', 'step.failed', 'task.canceled'])
  })
})

it('an error inside a message of the input is reported with its path, without other errors', async () => {
  const { status, body } = await call('POST', `${await newAgent()}/tasks`, {
    input: [{ role: 'nobody', content: 'x' }],
  })
  assert.equal(status, 400)
  assert.deepEqual(
    body.error.details.map(({ field, code }: any) => [field, code]),
    [['input[0].role', 'invalid_choice']],
  )
})
