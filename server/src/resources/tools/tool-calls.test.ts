import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventPayloads } from '#contract/events/event-payloads.ts'
import { ClaimedToolCall, ToolCall } from '#contract/tools/tool-calls.ts'
import { eventually, startAnother, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { startWebhookReceiver } from '../../../test/fakes/webhook-receiver.ts'
import { check } from '../../http/validation.ts'
import { makeKey, ownerOf } from '../../../test/actors.ts'
import { createAgent, eventsOfTask, waitForTask } from '../../../test/fixtures.ts'

/** Plays what its task says: see docs/guides/test-models.md. */
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const result = { text: 'It says: {{tool_result}}' }
const parameters = {
  type: 'object',
  properties: { order: { type: 'string' }, amount: { type: 'number' } },
  required: ['order'],
}
const refund = (order = '4711', id = 'call_1') => ({ id, name: 'refund', arguments: { order, amount: 12.5 } })

describe('tools on the side of the caller', () => {
  let service: TestService
  let project: string
  before(async () => {
    service = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
    project = await newProject('tools')
  })
  after(() => service.stop())

  const newProject = async (name: string): Promise<string> =>
    `/api/v1/projects/${(await service.send('POST', '/api/v1/projects', { body: { name } })).body.id}`
  const call = (method: string, path: string, body?: unknown, key?: string): Promise<Reply> =>
    service.send(method, `${project}${path}`, { body, ...(key === undefined ? {} : { key }) })
  let made = 0
  /** A new tool for each test, so that no test claims the calls of another. */
  const createTool = async (more: object = {}): Promise<string> => {
    const name = `refund_${++made}`
    const body = { name, description: 'Pays an order back.', kind: 'client', parameters, ...more }
    const answer = await call('POST', '/tools', body)
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return name
  }
  const newAgent = async (config: object = {}): Promise<string> => {
    const agent = await createAgent(service.send, project, {
      name: `agent ${++made}`,
      config: { model: 'builtin/script', ...config },
    })
    return `/agents/${agent.id}`
  }
  const give = async (agent: string, tool: string, more: object = {}, order?: string) => {
    const input = script({ tool_calls: [{ ...refund(order), name: tool }] }, result)
    const answer = await call('POST', `${agent}/tasks?wait=10`, { input, ...more })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    return answer.body
  }
  const ended = async (task: { id: string }) => waitForTask(service.send, project, task.id)
  const claim = async (tool: string, more: object = {}) =>
    call('POST', '/tool-calls/claim', { tools: [tool], wait: 5, ...more })
  const typesOf = async (task: { id: string }): Promise<string[]> =>
    (await eventsOfTask(service.send, project, task.id)).map(({ type }: any) => type)

  it('a client tool call waits without a worker, is claimed with its arguments, and the model reads its result', async () => {
    const tool = await createTool({ safety: 'keyed' })
    const agent = await newAgent({ tools: [tool] })
    const task = await give(agent, tool)
    assert.deepEqual([task.status, task.wait.reason, task.wait.tool_call_ids.length], ['waiting', 'tool', 1])
    const [id] = task.wait.tool_call_ids
    assert.deepEqual(task.wait.step_ids, [`step_${id.slice('call_'.length)}`])
    const pending = await call('GET', `/tool-calls?status=pending&task_id=${task.id}`)
    assert.deepEqual(
      pending.body.tool_calls.map((one: any) => [one.id, one.status, one.attempt]),
      [[id, 'pending', 0]],
    )
    assert.equal(pending.body.pagination.total, 1)
    const { status, body } = await claim(tool)
    assert.equal(status, 200)
    assert.deepEqual(check(ClaimedToolCall, body.tool_call), [])
    const { lease, ...claimed } = body.tool_call
    assert.deepEqual(claimed, {
      id,
      task_id: task.id,
      agent_id: task.agent_id,
      name: tool,
      arguments: { order: '4711', amount: 12.5 },
      idempotency_key: `${task.id}:1`,
      attempt: 1,
    })
    const held = await call('GET', `/tool-calls/${id}`)
    assert.deepEqual(check(ToolCall, held.body), [])
    assert.deepEqual([held.body.status, held.body.claimed_by], ['claimed', service.owner.user_id])
    assert.equal(JSON.stringify(held.body).includes(lease.token), false)
    const beat = await call('POST', `/tool-calls/${id}/heartbeat`, { lease: lease.token })
    assert.ok(beat.body.until >= lease.until)
    const given = await call('POST', `/tool-calls/${id}/result`, { lease: lease.token, output: { refund: 're_1' } })
    assert.deepEqual([given.status, given.body.status, given.body.output], [200, 'completed', '{"refund":"re_1"}'])
    const done = await ended(task)
    assert.deepEqual([done.status, done.output.content], ['completed', 'It says: {"refund":"re_1"}'])
    const types = await typesOf(task)
    assert.ok(types.indexOf('tool.requested') < types.indexOf('tool.resolved'))
  })

  it('a completed tool call, and one of a canceled task, leave no timer in the queue', async () => {
    const tool = await createTool()
    const agent = await newAgent({ tools: [tool] })
    const tasks = [await give(agent, tool), await give(agent, tool)]
    const ids = tasks.map(({ id }) => id)
    const timers = () => service.sql`select from pgboss.job where data->>'task_id' = any(${ids})`
    assert.equal((await timers()).length, 2)
    const [answered, canceled] = tasks
    await call('POST', `/tool-calls/${answered.wait.tool_call_ids[0]}/result`, { output: 'x' })
    await call('POST', `/tasks/${canceled.id}/cancel`)
    await ended(answered)
    await ended(canceled)
    await eventually(async () => (await timers()).length === 0)
  })

  it('a waiting claim gets a call as soon as a task makes it, also in another process', async () => {
    const tool = await createTool()
    const agent = await newAgent({ tools: [tool] })
    const other = await startAnother(service)
    try {
      const waiting = fetch(`${other.url}${project}/tool-calls/claim`, {
        method: 'POST',
        headers: { 'x-api-key': service.owner.api_key, 'content-type': 'application/json' },
        body: JSON.stringify({ tools: ['another', tool], wait: 60 }),
      })
      const task = await give(agent, tool)
      const answer = await waiting
      assert.equal(answer.status, 200)
      const { tool_call } = (await answer.json()) as any
      assert.equal(tool_call.task_id, task.id)
      const lease = tool_call.lease.token
      const failed = { code: 'no_such_order', message: 'There is no such order.' }
      const { body } = await call('POST', `/tool-calls/${tool_call.id}/result`, { lease, error: failed })
      assert.deepEqual([body.status, body.output, body.error], ['failed', null, failed])
      assert.equal((await ended(task)).output.content, 'It says: There is no such order.')
    } finally {
      await other.stop()
    }
  })

  it('a claim without a call returns 204 at its timeout', async () => {
    const answer = await claim('nothing', { wait: 0 })
    assert.deepEqual([answer.status, answer.body], [204, ''])
    assert.equal((await claim('nothing', { wait: 1 })).status, 204)
  })

  it('fifty concurrent claims share forty calls, each call once, oldest first', async () => {
    const tool = await createTool()
    const agent = await newAgent({ tools: [tool], max_concurrent_tasks: 100 })
    const tasks = await Promise.all(Array.from({ length: 40 }, (_, i) => give(agent, tool, {}, `order ${i}`)))
    const claims = await Promise.all(Array.from({ length: 50 }, () => claim(tool, { wait: 0 })))
    const claimed = claims.flatMap(({ status, body }) => (status === 200 ? [body.tool_call.task_id as string] : []))
    assert.equal(claimed.length, 40)
    assert.deepEqual(new Set(claimed), new Set(tasks.map(({ id }) => id)))
  })

  it('the first result wins, and a second one gets the sender and time of the first, also with the ended lease', async () => {
    const tool = await createTool()
    const agent = await newAgent({ tools: [tool] })
    const task = await give(agent, tool)
    const { tool_call } = (await claim(tool)).body
    const path = `/tool-calls/${tool_call.id}/result`
    const answers = await Promise.all(
      ['a', 'b', 'c', 'd'].map((output) => call('POST', path, { lease: tool_call.lease.token, output })),
    )
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409, 409, 409],
    )
    const second = await call('POST', path, { output: 'late' })
    assert.equal(second.body.error.code, 'tool_call_already_resolved')
    assert.equal(second.body.error.details.resolved_by, service.owner.user_id)
    assert.match(second.body.error.details.resolved_at, /^20\d\d-/)
    const spent = await call('POST', `/tool-calls/${tool_call.id}/heartbeat`, { lease: tool_call.lease.token })
    assert.deepEqual([spent.status, spent.body.error.code], [409, 'lease_lost'])
    const won = answers.find(({ status }) => status === 200)!.body.output
    assert.equal((await ended(task)).output.content, `It says: ${won}`)
  })

  it('the same body with the same Idempotency-Key gets the same response', async () => {
    const tool = await createTool()
    const task = await give(await newAgent({ tools: [tool] }), tool)
    const send = () =>
      service.send('POST', `${project}/tool-calls/${task.wait.tool_call_ids[0]}/result`, {
        body: { output: 'paid' },
        headers: { 'idempotency-key': `result of ${task.id}` },
      })
    const [first, again] = [await send(), await send()]
    assert.deepEqual([first.status, again.status], [200, 200])
    assert.deepEqual(again.body, first.body)
  })

  it('a result that does not match the schema is refused with 422, and the call stays open', async () => {
    const result_schema = { type: 'object', properties: { refund: { type: 'string' } }, required: ['refund'] }
    const tool = await createTool({ result_schema })
    const task = await give(await newAgent({ tools: [tool] }), tool)
    const path = `/tool-calls/${task.wait.tool_call_ids[0]}/result`
    const wrong = await call('POST', path, { output: { refund: 1 } })
    assert.deepEqual([wrong.status, wrong.body.error.code], [422, 'invalid_tool_result'])
    assert.equal(wrong.body.error.details[0].field, 'output.refund')
    for (const body of [{}, { output: 1, error: { code: 'a', message: 'b' } }])
      assert.equal((await call('POST', path, body)).status, 400)
    assert.equal((await call('POST', path, { output: { refund: 're_1' } })).status, 200)
    assert.equal((await ended(task)).status, 'completed')
  })

  it('a result may have any type that the schema allows', async () => {
    const tool = await createTool({ result_schema: { type: 'array', items: { type: 'integer' }, minItems: 1 } })
    const task = await give(await newAgent({ tools: [tool] }), tool)
    const path = `/tool-calls/${task.wait.tool_call_ids[0]}/result`
    for (const output of [[], ['1'], 1, 'text', { 0: 1 }])
      assert.equal((await call('POST', path, { output })).status, 422, JSON.stringify(output))
    assert.equal((await call('POST', path, { output: [1, 2] })).status, 200)
    const either = await createTool({ result_schema: { enum: ['yes', 'no', null] } })
    const asked = await give(await newAgent({ tools: [either] }), either)
    const sent = await call('POST', `/tool-calls/${asked.wait.tool_call_ids[0]}/result`, { output: 'no' })
    assert.equal(sent.status, 200)
  })

  it('null is a result of a tool call, also inside a result, and is absent beside an error', async () => {
    const properties = { refund: { type: ['string', 'null'] } }
    const tool = await createTool({ result_schema: { type: ['object', 'null'], properties, required: ['refund'] } })
    const agent = await newAgent({ tools: [tool] })
    for (const [body, text] of [
      [{ output: null }, 'null'],
      [{ output: { refund: null, fees: { bank: null } } }, '{"refund":null,"fees":{"bank":null}}'],
      [{ output: null, error: { code: 'closed', message: 'The bank is closed.' } }, 'The bank is closed.'],
    ] as const) {
      const task = await give(agent, tool)
      const sent = await call('POST', `/tool-calls/${task.wait.tool_call_ids[0]}/result`, body)
      assert.equal(sent.status, 200, JSON.stringify(sent.body))
      assert.equal((await ended(task)).output.content, `It says: ${text}`)
    }
  })

  it('a call that may be repeated is offered again when its lease ends, with the same key and the next attempt', async () => {
    const tool = await createTool({ safety: 'keyed' })
    const task = await give(await newAgent({ tools: [tool] }), tool)
    const first = (await claim(tool)).body.tool_call
    await endLease(first.id)
    const second = (await claim(tool, { wait: 30 })).body.tool_call
    assert.deepEqual([second.id, second.attempt, second.idempotency_key], [first.id, 2, first.idempotency_key])
    const late = await call('POST', `/tool-calls/${first.id}/result`, { lease: first.lease.token, output: 'late' })
    assert.deepEqual([late.status, late.body.error.code], [409, 'lease_lost'])
    const beat = await call('POST', `/tool-calls/${first.id}/heartbeat`, { lease: first.lease.token })
    assert.deepEqual([beat.status, beat.body.error.code], [409, 'lease_lost'])
    const lease = second.lease.token
    assert.equal((await call('POST', `/tool-calls/${first.id}/result`, { lease, output: 'paid' })).status, 200)
    const again = await call('POST', `/tool-calls/${first.id}/result`, { lease: first.lease.token, output: 'late' })
    assert.equal(again.body.error.code, 'tool_call_already_resolved')
    assert.equal((await ended(task)).output.content, 'It says: paid')
  })

  const endLease = async (id: string): Promise<void> => {
    await service.sql`update tool_call set lease_until = now() - interval '1 second' where id = ${id}`
  }

  it('an unsafe call whose lease ended waits for a person, who has it offered again or gives its result', async () => {
    const tool = await createTool()
    const agent = await newAgent({ tools: [tool] })
    const task = await give(agent, tool)
    const first = (await claim(tool)).body.tool_call
    await endLease(first.id)
    const asked = await eventually(async () => {
      const { body } = await call('GET', `/tasks/${task.id}`)
      return body.wait?.reason === 'unknown_outcome' && body
    })
    assert.equal((await call('GET', `/tool-calls/${first.id}`)).body.status, 'unknown')
    const late = await call('POST', `/tool-calls/${first.id}/result`, { lease: first.lease.token, output: 'late' })
    assert.equal(late.body.error.code, 'lease_lost')
    const [approval_id] = asked.wait.approval_ids
    const approval = await call('GET', `/approvals/${approval_id}`)
    assert.deepEqual([approval.body.kind, approval.body.tool], ['recovery', tool])
    await call('POST', `/approvals/${approval_id}/resolve`, { decision: 'approve' })
    const second = (await claim(tool, { wait: 30 })).body.tool_call
    assert.deepEqual([second.id, second.attempt], [first.id, 2])
    await endLease(second.id)
    const again = await eventually(async () => {
      const { body } = await call('GET', `/tasks/${task.id}`)
      return body.wait?.reason === 'unknown_outcome' && body
    })
    await call('POST', `/approvals/${again.wait.approval_ids[0]}/resolve`, {
      decision: 'approve',
      result: 'It was paid.',
    })
    assert.equal((await ended(task)).output.content, 'It says: It was paid.')
    assert.equal((await call('GET', `/tool-calls/${first.id}`)).body.status, 'completed')
  })

  it('a cancellation is returned to the next heartbeat and to the result, and the receipt marks the call as uncertain', async () => {
    const tool = await createTool()
    const task = await give(await newAgent({ tools: [tool] }), tool)
    const { id, lease } = (await claim(tool)).body.tool_call
    assert.equal((await call('POST', `/tasks/${task.id}/cancel`, {})).status, 200)
    for (const [path, body] of [
      ['heartbeat', { lease: lease.token }],
      ['result', { lease: lease.token, output: 'late' }],
    ] as const) {
      const answer = await call('POST', `/tool-calls/${id}/${path}`, body)
      assert.deepEqual([answer.status, answer.body.error.code], [409, 'task_canceled'], path)
    }
    assert.equal((await call('GET', `/tool-calls/${id}`)).body.status, 'canceled')
    const { events } = (await call('GET', `/tasks/${task.id}/events?limit=1000`)).body
    const { data } = events.find(({ type }: any) => type === 'task.canceled')
    assert.deepEqual([data.effects, data.uncertain.map((one: any) => one.tool)], [[], [tool]])
  })

  it('the model reads an error for a call without a result in time', async () => {
    const tool = await createTool({ timeout_seconds: 1 })
    const task = await give(await newAgent({ tools: [tool] }), tool)
    assert.equal((await ended(task)).output.content, 'It says: No result came in time.')
    const { body } = await call('GET', `/tool-calls?task_id=${task.id}`)
    assert.deepEqual(
      body.tool_calls.map((one: any) => [one.status, one.error.code]),
      [['timed_out', 'tool_timeout']],
    )
    assert.equal((await claim(tool, { wait: 0 })).status, 204)
  })

  it('a policy can require approval first, and the claim has the edited arguments', async () => {
    const tool = await createTool()
    const task = await give(await newAgent({ tools: [tool], tool_policies: { [tool]: 'ask' } }), tool)
    assert.equal(task.wait.reason, 'approval')
    assert.equal((await claim(tool, { wait: 0 })).status, 204)
    const edited = { order: '4711', amount: 1 }
    await call('POST', `/approvals/${task.wait.approval_ids[0]}/resolve`, { decision: 'approve', arguments: edited })
    const { tool_call } = (await claim(tool)).body
    assert.deepEqual(tool_call.arguments, edited)
    await call('POST', `/tool-calls/${tool_call.id}/result`, { output: 'paid' })
    assert.equal((await ended(task)).status, 'completed')
  })

  it('a task may have its own tools, whose names must be free', async () => {
    const tool = await createTool()
    const other = (await newAgent()).split('/').at(-1)
    const agent = await newAgent({ tools: [tool, 'current_time'], delegates: [{ agent_id: other, name: 'helper' }] })
    const own = { name: 'look_up', description: 'Looks an order up.', parameters, safety: 'safe' }
    const wrong = [
      [{ ...own, name: tool }, 'tools[0].name'],
      [{ ...own, name: 'current_time' }, 'tools[0].name'],
      [{ ...own, name: 'delegate_helper' }, 'tools[0].name'],
      [{ ...own, parameters: { type: 'nothing' } }, 'tools[0].parameters'],
      [{ ...own, timeout_seconds: 30 * 86_400 + 1 }, 'tools[0].timeout_seconds'],
    ] as const
    for (const [one, field] of wrong) {
      const answer = await call('POST', `${agent}/tasks`, { input: 'x', tools: [one] })
      assert.equal(answer.status, 400)
      assert.equal(answer.body.error.details[0].field, field)
    }
    assert.equal((await call('POST', `${agent}/tasks`, { input: 'x', tools: [own, own] })).status, 400)
    const many = Array.from({ length: 129 }, (_, i) => ({ ...own, name: `tool_${i}` }))
    assert.equal((await call('POST', `${agent}/tasks`, { input: 'x', tools: many })).status, 400)
    assert.equal((await call('POST', `${agent}/tasks`, { input: 'x', tools: [{ ...own, kind: 'http' }] })).status, 400)
    const task = await give(agent, 'look_up', { tools: [{ kind: 'client', strict: true, ...own }] })
    const { tool_call } = (await claim('look_up')).body
    assert.equal(tool_call.task_id, task.id)
    await call('POST', `/tool-calls/${tool_call.id}/result`, { lease: tool_call.lease.token, output: 'shipped' })
    assert.equal((await ended(task)).output.content, 'It says: shipped')
  })

  it('a tool of a task has its own result schema, also if the project has a tool of that name', async () => {
    const strict = { type: 'object', required: ['of_project'] }
    const name = await createTool({ result_schema: strict })
    const own = {
      name,
      description: 'Of the task.',
      parameters,
      result_schema: { type: 'object', required: ['of_task'] },
    }
    const task = await give(await newAgent(), name, { tools: [own] })
    const path = `/tool-calls/${task.wait.tool_call_ids[0]}/result`
    assert.equal((await call('POST', path, { output: { of_project: true } })).status, 422)
    assert.equal((await call('POST', path, { output: { of_task: 1 } })).status, 200)
    assert.equal((await ended(task)).output.content, 'It says: {"of_task":1}')
  })

  it('a credential with only tools:execute can read calls, but neither tasks nor agents', async () => {
    const tool = await createTool()
    const agent = await newAgent({ tools: [tool] })
    const task = await give(agent, tool)
    const { key } = await makeKey(service, ownerOf(service), ['tools:execute'])
    const as = (method: string, path: string, body?: unknown) => call(method, path, body, key)
    const { tool_call } = (await as('POST', '/tool-calls/claim', { tools: [tool], wait: 5 })).body
    assert.equal(tool_call.task_id, task.id)
    assert.equal((await as('GET', '/tool-calls')).status, 200)
    for (const path of [`/tasks/${task.id}`, '/tasks', agent, '/agents', '/tools'])
      assert.equal((await as('GET', path)).status, 403, path)
    assert.equal((await as('POST', `/tool-calls/${tool_call.id}/result`, { output: 'ok' })).status, 200)
    const { key: reading } = await makeKey(service, ownerOf(service), ['agents:read'])
    assert.equal((await call('GET', '/tool-calls', undefined, reading)).status, 200)
    assert.equal((await call('POST', '/tool-calls/claim', { tools: [tool] }, reading)).status, 403)
  })

  it('a call of another project is 404, and a forged lease is refused', async () => {
    const tool = await createTool()
    const task = await give(await newAgent({ tools: [tool] }), tool)
    const { tool_call } = (await claim(tool)).body
    const elsewhere = await newProject('elsewhere')
    for (const [method, path, body] of [
      ['GET', '', undefined],
      ['POST', '/heartbeat', { lease: tool_call.lease.token }],
      ['POST', '/result', { output: 'stolen' }],
    ] as const) {
      const answer = await service.send(method, `${elsewhere}/tool-calls/${tool_call.id}${path}`, { body })
      assert.deepEqual([answer.status, answer.body.error.code], [404, 'resource_not_found'])
    }
    const other = await service.send('POST', `${elsewhere}/tool-calls/claim`, { body: { tools: [tool], wait: 0 } })
    assert.equal(other.status, 204)
    const forged = await call('POST', `/tool-calls/${tool_call.id}/result`, { lease: 'lease_forged', output: 'x' })
    assert.deepEqual([forged.status, forged.body.error.code], [409, 'lease_lost'])
    await call('POST', `/tool-calls/${tool_call.id}/heartbeat`, { lease: `${tool_call.lease.token.slice(0, -4)}AAAA` })
    const audit = await service.send('GET', '/api/v1/auth/audit?action=tool_call.refused')
    assert.equal(JSON.stringify(audit.body).split(tool_call.id).length - 1, 2)
    assert.equal((await call('GET', `/tasks/${task.id}`)).body.status, 'waiting')
  })

  it('webhooks get events of a call and of its result', async () => {
    const receiver = await startWebhookReceiver()
    try {
      const tool = await createTool()
      const agent = await newAgent({ tools: [tool] })
      const hook = await service.send('POST', '/api/v1/webhooks', {
        body: {
          url: receiver.url('/tools'),
          events: ['tool.requested', 'tool.resolved'],
          secret: 'whsec_0123456789abcdef',
        },
      })
      assert.equal(hook.status, 201, JSON.stringify(hook.body))
      const task = await give(agent, tool)
      const [call_id] = task.wait.tool_call_ids
      await call('POST', `/tool-calls/${call_id}/result`, { output: 'paid' })
      const sent = (await receiver.received('/tools', 2)).map(({ body }) => JSON.parse(body))
      const [requested, resolved] = ['tool.requested', 'tool.resolved'].map((type) =>
        sent.find((one) => one.event === type),
      )
      assert.deepEqual(
        [requested.data.call_id, requested.data.tool, requested.data.arguments],
        [call_id, tool, { order: '4711', amount: 12.5 }],
      )
      assert.deepEqual([resolved.data.call_id, resolved.data.error], [call_id, null])
      for (const { event, data } of [requested, resolved])
        assert.deepEqual(check(eventPayloads[event as 'tool.requested' | 'tool.resolved'], data), [])
    } finally {
      await receiver.close()
    }
  })

  it('members of another kind are refused, and an update keeps members that are not given', async () => {
    const name = await createTool({ result_schema: { type: 'object' }, timeout_seconds: 60 })
    const { body } = await call('GET', '/tools?kind=client')
    const { id } = body.tools.find((one: any) => one.name === name)
    const updated = await call('PUT', `/tools/${id}`, { timeout_seconds: 90 })
    assert.deepEqual([updated.body.timeout_seconds, updated.body.result_schema], [90, { type: 'object' }])
    const http = { name: 'a_tool', description: 'x', kind: 'http', http: { method: 'GET', url: 'https://example.com' } }
    const wrong = [
      { ...http, timeout_seconds: 5 },
      { name: 'a_tool', description: 'x', kind: 'client', http: http.http },
      { name: 'a_tool', description: 'x', kind: 'client', result_schema: { type: 'nothing' } },
    ]
    for (const one of wrong) assert.equal((await call('POST', '/tools', one)).status, 400, JSON.stringify(one))
  })
})
