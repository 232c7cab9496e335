import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { createAgent, waitForTask } from '../../../test/fixtures.ts'

/** Plays what its task says: see docs/guides/test-models.md. */
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const result = { text: 'It says: {{tool_result}}' }

describe('agents that give each other tasks', () => {
  let service: TestService
  let project: string
  let elsewhere: string
  before(async () => {
    service = await startTestService({ CADRE_WORKER_SLOTS: '1', CADRE_EGRESS_ALLOW: 'loopback' })
    project = await newProject('delegation')
    elsewhere = await newProject('elsewhere')
  })
  after(() => service.stop())

  const newProject = async (name: string): Promise<string> =>
    `/api/v1/projects/${(await service.send('POST', '/api/v1/projects', { body: { name } })).body.id}`
  const call = (method: string, path: string, body?: unknown): Promise<Reply> =>
    service.send(method, `${project}${path}`, { body })
  let made = 0
  const newAgent = async (config: object = {}, name = `agent_${++made}`): Promise<{ id: string; name: string }> => {
    const agent = await createAgent(service.send, project, { name, config: { model: 'builtin/script', ...config } })
    return { id: agent.id, name }
  }
  const give = async (agent: { id: string }, input: unknown, more: object = {}, wait = 0) => {
    const answer = await call('POST', `/agents/${agent.id}/tasks?wait=${wait}`, { input, ...more })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const ended = (task: { id: string }) => waitForTask(service.send, project, task.id)
  const waits = (task: { id: string }, reason: string) =>
    eventually(async () => {
      const { body } = await call('GET', `/tasks/${task.id}`)
      return body.status === 'waiting' && body.wait.reason === reason && body
    })
  const to = (agent: { name: string }, input: string, id = `call_${++made}`) => ({
    id,
    name: `delegate_${agent.name}`,
    arguments: { input },
  })
  const childrenOf = async (task: { id: string }): Promise<any[]> =>
    (await call('GET', `/tasks?parent_task_id=${task.id}`)).body.tasks

  it('the model reads the result of a delegated task, also with one slot and three levels', async () => {
    const last = await newAgent()
    const middle = await newAgent({ delegates: [{ agent_id: last.id }] })
    const first = await newAgent({ delegates: [{ agent_id: middle.id, description: 'Passes it on.' }] })
    const below = script({ text: 'deep' })
    const task = await give(
      first,
      script({ tool_calls: [to(middle, script({ tool_calls: [to(last, below)] }, result))] }, result),
    )
    const done = await ended(task)
    assert.deepEqual([done.status, done.output.content], ['completed', 'It says: It says: deep'])
    assert.deepEqual([done.parent_task_id, done.root_task_id, done.depth], [null, task.id, 0])
    const [child] = await childrenOf(task)
    assert.deepEqual([child.agent_id, child.root_task_id, child.depth], [middle.id, task.id, 1])
    const [grandchild] = await childrenOf(child)
    assert.deepEqual([grandchild.parent_task_id, grandchild.root_task_id, grandchild.depth], [child.id, task.id, 2])
    const { total, ...own } = done.usage
    assert.equal(own.steps, 3)
    assert.equal(total.steps, own.steps + child.usage.steps + grandchild.usage.steps)
    assert.equal(child.usage.total.output_tokens, child.usage.output_tokens + grandchild.usage.output_tokens)
    const tree = (await call('GET', `/tasks/${task.id}/tree`)).body.task
    assert.deepEqual(tree, {
      id: task.id,
      agent_id: first.id,
      agent_name: first.name,
      status: 'completed',
      depth: 0,
      children: [
        {
          id: child.id,
          agent_id: middle.id,
          agent_name: middle.name,
          status: 'completed',
          depth: 1,
          children: [
            {
              id: grandchild.id,
              agent_id: last.id,
              agent_name: last.name,
              status: 'completed',
              depth: 2,
              children: [],
            },
          ],
        },
      ],
    })
    const ofTree = (await call('GET', `/tasks?root_task_id=${task.id}`)).body
    assert.deepEqual(
      [ofTree.tasks.map(({ id }: any) => id), ofTree.pagination.total],
      [[grandchild.id, child.id, task.id], 3],
    )
    const roots = (await call('GET', '/tasks?roots=true&limit=100')).body
    assert.ok(roots.tasks.every((one: any) => one.parent_task_id === null))
    assert.equal(roots.pagination.total, roots.tasks.length)
  })

  it('several tasks are delegated concurrently, and the tool has the input schema of the agent', async () => {
    const input_schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    const worker = await newAgent({ model: 'builtin/echo', input_schema })
    const boss = await newAgent({ delegates: [{ agent_id: worker.id, name: 'count' }] })
    const calls = Array.from({ length: 10 }, (_, n) => ({ id: `call_${n}`, name: 'delegate_count', arguments: { n } }))
    const task = await give(boss, script({ tool_calls: calls }, { text: 'done' }))
    assert.equal((await ended(task)).output.content, 'done')
    const children = await childrenOf(task)
    assert.deepEqual(new Set(children.map(({ input }) => input.n)), new Set(calls.map((_, n) => n)))
    const { steps } = (await call('GET', `/tasks/${task.id}/steps?limit=50`)).body
    const results = steps.filter(({ type }: any) => type === 'wait').map(({ output }: any) => output.content)
    assert.equal(results.length, 10)
    assert.ok(
      results.every((content: string, n: number) => content.includes(`"n":${n}`)),
      JSON.stringify(results),
    )
  })

  it('a waiting task names the tasks that it waits for, and occupies no worker', async () => {
    const slow = await newAgent({ tools: ['request_input'] })
    const boss = await newAgent({ delegates: [{ agent_id: slow.id }] })
    const asks = script({ tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }, result)
    const task = await give(boss, script({ tool_calls: [to(slow, asks)] }, result))
    const waiting = await waits(task, 'child')
    const [child_id] = waiting.wait.child_task_ids
    const child = await waits({ id: child_id }, 'input')
    assert.equal(child.parent_task_id, task.id)
    await call('POST', `/tasks/${child_id}/messages`, { content: 'The red one.' })
    assert.equal((await ended(task)).output.content, 'It says: It says: The red one.')
  })

  it('a cycle of delegations ends at the maximum depth with an error that the model reads', async () => {
    const loop = await newAgent({ max_depth: 2 })
    await call('PUT', `/agents/${loop.id}`, { config: { delegates: [{ agent_id: loop.id }] } })
    const nest = (levels: number): string =>
      levels === 0 ? script({ text: 'end' }) : script({ tool_calls: [to(loop, nest(levels - 1))] }, result)
    const task = await give(loop, nest(3))
    const { content } = (await ended(task)).output
    assert.match(content, /This task has the depth 2, and tasks may be delegated to a depth of 2 at most\./)
    assert.equal((await call('GET', `/tasks?root_task_id=${task.id}`)).body.pagination.total, 3)
  })

  it('the model reads an error for a delegated task that fails or whose agent is stopped', async () => {
    const failing = await newAgent()
    const stopped = await newAgent()
    await call('POST', `/agents/${stopped.id}/stop`)
    await eventually(async () => (await call('GET', `/agents/${stopped.id}`)).body.status === 'stopped')
    const boss = await newAgent({ delegates: [{ agent_id: failing.id }, { agent_id: stopped.id }] })
    const fails = script({ error: { code: 'provider_refused_request' } })
    const one = await ended(await give(boss, script({ tool_calls: [to(failing, fails)] }, result)))
    assert.match(one.output.content, new RegExp(`The task of ${failing.name} ended as failed: `))
    const two = await ended(await give(boss, script({ tool_calls: [to(stopped, 'x')] }, result)))
    assert.match(two.output.content, new RegExp(`The agent ${stopped.name} is stopped and takes no tasks`))
    assert.deepEqual(await childrenOf(two), [])
  })

  it('a cancellation cancels the delegated tasks first, and the receipt lists their effects', async () => {
    const tool = { name: 'pay', description: 'x', kind: 'client', safety: 'unsafe' }
    assert.equal((await call('POST', '/tools', tool)).status, 201)
    const payer = await newAgent({ tools: ['pay', 'request_input'] })
    const boss = await newAgent({ delegates: [{ agent_id: payer.id }] })
    const pays = script(
      { tool_calls: [{ name: 'pay', arguments: {} }] },
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Next?' } }] },
    )
    const task = await give(boss, script({ tool_calls: [to(payer, pays)] }))
    const [child_id] = (await waits(task, 'child')).wait.child_task_ids
    const { tool_call } = (await call('POST', '/tool-calls/claim', { tools: ['pay'], wait: 10 })).body
    await call('POST', `/tool-calls/${tool_call.id}/result`, { output: 'paid' })
    await waits({ id: child_id }, 'input')
    const answer = await call('POST', `/tasks/${task.id}/cancel`, { reason: 'No longer needed.' })
    assert.equal(answer.status, 200)
    const child = (await call('GET', `/tasks/${child_id}`)).body
    const parent = (await call('GET', `/tasks/${task.id}`)).body
    assert.deepEqual([child.status, parent.status], ['canceled', 'canceled'])
    assert.ok(child.finished_at <= parent.finished_at)
    const { events } = (await call('GET', `/tasks/${task.id}/events?limit=100`)).body
    const { data } = events.find(({ type }: any) => type === 'task.canceled')
    assert.deepEqual(
      data.effects.map((one: any) => one.tool),
      ['pay'],
    )
  })

  it('a task that times out cancels its delegated tasks', async () => {
    const slow = await newAgent({ tools: ['request_input'] })
    const boss = await newAgent({ delegates: [{ agent_id: slow.id }] })
    const asks = script({ tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] })
    const task = await give(boss, script({ tool_calls: [to(slow, asks)] }), { timeout_seconds: 2 })
    const [child_id] = (await waits(task, 'child')).wait.child_task_ids
    assert.equal((await ended(task)).status, 'expired')
    assert.equal((await ended({ id: child_id })).status, 'canceled')
  })

  it('delegated tasks share the budget of the root task and never exceed it together', async () => {
    const worker = await newAgent()
    const boss = await newAgent({ delegates: [{ agent_id: worker.id }] })
    const calls = Array.from({ length: 4 }, (_, i) => to(worker, script({ text: `number ${i} `.repeat(20) })))
    const input = script({ tool_calls: calls }, { text: 'done' })
    const tokens = ({ input_tokens, output_tokens }: any): number => input_tokens + output_tokens
    const free = (await ended(await give(boss, input))).usage
    // All that the root needs, and half of what those below it do.
    const max_tokens = Math.ceil(tokens(free) + (tokens(free.total) - tokens(free)) / 2)
    const task = await give(boss, input, { budget: { max_tokens } })
    await eventually(async () => {
      const { body } = await call('GET', `/tasks?root_task_id=${task.id}`)
      return body.tasks.some((one: any) => one.wait?.reason === 'budget')
    })
    const { tasks } = (await call('GET', `/tasks?root_task_id=${task.id}`)).body
    const used = tasks.reduce((sum: number, { usage }: any) => sum + tokens(usage), 0)
    assert.ok(used <= max_tokens, `${used} of ${max_tokens} tokens`)
    const [row] = await service.sql<{ spent_tokens: number; held_tokens: number; max_tokens: number }>`
      select spent_tokens, held_tokens, max_tokens from budget where subject = ${task.id}`
    assert.ok(row && row.spent_tokens + row.held_tokens <= row.max_tokens)
    const listed = (await call('GET', '/budgets')).body
    assert.equal(JSON.stringify(listed).includes(task.id), false)
    // Raised, it lets all of them end.
    const raised = await call('PUT', `/tasks/${task.id}/budget`, { max_tokens: 1_000_000 })
    assert.equal(raised.status, 200, JSON.stringify(raised.body))
    assert.equal((await ended(task)).status, 'completed')
  })

  it('delegation to an agent of another project, to a missing version, and two tools with one name are refused', async () => {
    const other = await service.send('POST', `${elsewhere}/agents`, { body: { name: 'other' } })
    const own = await newAgent()
    const wrong = [
      [[{ agent_id: other.body.id }], 'config.delegates[0].agent_id'],
      [[{ agent_id: 'agent_00000000000000000000000000' }], 'config.delegates[0].agent_id'],
      [[{ agent_id: own.id, version: 99 }], 'config.delegates[0].version'],
      [[{ agent_id: own.id }, { agent_id: own.id }], 'config.delegates[1].name'],
      [Array.from({ length: 21 }, (_, i) => ({ agent_id: own.id, name: `n${i}` })), 'config.delegates'],
    ] as const
    for (const [delegates, field] of wrong) {
      const answer = await call('POST', '/agents', { name: `wrong ${++made}`, config: { delegates } })
      assert.deepEqual([answer.status, answer.body.error.details[0].field], [400, field])
      const changed = await call('PUT', `/agents/${own.id}`, { config: { delegates } })
      assert.equal(changed.status, 400)
    }
    assert.equal((await call('POST', '/agents', { name: `wrong ${++made}`, config: { max_depth: 9 } })).status, 400)
  })
})
