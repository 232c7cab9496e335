import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, it, type TestContext } from 'node:test'
import { startFakeModelServer, type FakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { createProject } from '../../../test/fixtures.ts'

describe('calls of models and tools under a lease', () => {
  let test: TestService
  let models: FakeModelServer
  let base: string
  let count = 0
  before(async () => {
    models = await startFakeModelServer()
    test = await startTestService({
      CADRE_EGRESS_ALLOW: 'loopback',
      OPENAI_BASE_URL: models.base_url,
      OPENAI_API_KEY: 'sk-fake',
      ANTHROPIC_BASE_URL: models.base_url,
      ANTHROPIC_API_KEY: 'sk-fake',
    })
    base = (await createProject(test.send, 'under-lease')).path
  })
  after(async () => {
    await test.stop()
    await models.close()
  })

  const make = async (path: string, body: object) => {
    const reply = await test.send('POST', `${base}${path}`, { body })
    assert.ok(reply.status < 300, JSON.stringify(reply.body))
    return reply.body
  }
  const claim = async (queue: string) => {
    const { status, body } = await test.send('POST', `${base}/work/claim`, { body: { queues: [queue], wait: 20 } })
    assert.equal(status, 200, JSON.stringify(body))
    return body.work.lease.token as string
  }
  const begin = async (config: object = {}, more: object = {}) => {
    const queue = `u${++count}`
    const model = 'openai/gpt-4o-mini'
    const agent = await make('/agents', {
      name: queue,
      config: { model, runtime: { kind: 'remote', queue }, ...config },
    })
    const { id } = await make(`/agents/${agent.id}/tasks`, { input: 'Go.', ...more })
    return { id: id as string, agent_id: agent.id as string, queue, token: await claim(queue) }
  }
  const post = (token: string, path: string, body: object, signal?: AbortSignal) =>
    fetch(`${test.url}${base}/work/${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(body),
      signal: signal ?? null,
    })
  const callTool = async (token: string, name: string, args: object = {}, signal?: AbortSignal) => {
    const params = { name, arguments: args }
    const reply = await post(token, 'mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, signal)
    const text = await reply.text()
    return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text).result as {
      content: { text: string }[]
      isError?: boolean
    }
  }
  const steps = async (id: string) => (await test.send('GET', `${base}/tasks/${id}/steps`)).body.steps
  const pendingApproval = (id: string): Promise<{ id: string }> =>
    eventually<{ id: string }>(async () => {
      const { body } = await test.send('GET', `${base}/approvals?status=pending&limit=100`)
      return body.approvals.find(({ task_id }: { task_id: string }) => task_id === id)
    })

  /** A tool of the agent at a server that responds when the test allows it. */
  const slowTool = async (t: TestContext, safety: string) => {
    const open: ServerResponse[] = []
    const { url, requests } = await startLocalServer(t, (_request, response) => void open.push(response))
    const name = `slow_${++count}`
    await make('/tools', {
      ...{ name, description: 'Slow.', kind: 'http', safety, parameters: { type: 'object', properties: {} } },
      http: { method: 'POST', url },
    })
    const asked = (n: number) => eventually(async () => requests.length >= n)
    return { name, requests, asked, answer: (text = 'done') => void open.shift()!.end(text) }
  }

  it('the tool gateway waits for an approval if the policy asks for it, and calls the tool with the approved arguments', async () => {
    const { id, token } = await begin({ tools: ['current_time'], tool_policies: { current_time: 'ask' } })
    const called = callTool(token, 'current_time', { time_zone: 'UTC' })
    const approval = await pendingApproval(id)
    const body = { decision: 'approve', arguments: { time_zone: 'Asia/Tokyo' } }
    await test.send('POST', `${base}/approvals/${approval.id}/resolve`, { body })
    assert.match((await called).content[0]!.text, /\+09:00|Tokyo/)
  })

  it('the model gateway sends images of a worker, stored once per task, and files of the project to the model', async () => {
    const { id, token } = await begin()
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
      'base64',
    )
    const url = `data:image/png;base64,${png.toString('base64')}`
    const headers = { 'content-type': 'text/plain' }
    const { body: note } = await test.send('POST', `${base}/files?name=note.txt`, { body: 'noted', headers })
    const chat = (content: object[]) => ({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }] })
    const file = { type: 'file', file: { file_id: note.id } }
    const asks: [string, object][] = [
      ['v1/chat/completions', chat([{ type: 'image_url', image_url: { url } }, file])],
      [
        'v1/responses',
        { model: 'gpt-4o-mini', input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] },
      ],
    ]
    for (const [path, ask] of asks) {
      const reply = await post(token, path, ask)
      assert.equal(reply.status, 200, await reply.clone().text())
      const sent = JSON.stringify(models.requests.at(-1)!.body)
      assert.ok(sent.includes(url), sent)
      assert.equal(sent.includes('note.txt:\\nnoted'), path.includes('chat'))
    }
    const { body: listed } = await test.send('GET', `${base}/files?task_id=${id}`)
    assert.deepEqual([listed.files.length, listed.files[0].bytes], [1, png.length])

    const { body: other } = await test.send('POST', '/api/v1/projects', { body: { name: 'elsewhere' } })
    const { body: foreign } = await test.send('POST', `/api/v1/projects/${other.id}/files`, { body: 'secret', headers })
    const wrong: [object, number, string][] = [
      [{ type: 'file', file: { file_id: foreign.id } }, 404, 'messages[0].content[0].file.file_id'],
      [
        { type: 'image_url', image_url: { url: 'data:image/png;base64,*' } },
        400,
        'messages[0].content[0].image_url.url',
      ],
      [
        { type: 'image_url', image_url: { url: 'https://10.0.0.1/a.png' } },
        400,
        'messages[0].content[0].image_url.url',
      ],
    ]
    for (const [part, status, param] of wrong) {
      const reply = await post(token, 'v1/chat/completions', chat([part]))
      assert.deepEqual([reply.status, ((await reply.json()) as any).error.param], [status, param])
    }
    assert.equal((await test.sql`select 1 from file where sha256 is null`).length, 0)
  })

  it('the tool gateway returns a rejected call as an error for the model', async () => {
    const { id, token } = await begin({ tools: ['current_time'], tool_policies: { current_time: 'ask' } })
    const called = callTool(token, 'current_time')
    const approval = await pendingApproval(id)
    const body = { decision: 'reject', reason: 'Not now.' }
    await test.send('POST', `${base}/approvals/${approval.id}/resolve`, { body })
    const result = await called
    assert.equal(result.isError, true)
    assert.match(result.content[0]!.text, /Not now\./)
  })

  it('a parked task waits for the approval of its call, and the next worker gets the call made', async () => {
    const { id, queue, token } = await begin({ tools: ['current_time'], tool_policies: { current_time: 'ask' } })
    const stop = new AbortController()
    const cut = callTool(token, 'current_time', { time_zone: 'UTC' }, stop.signal).catch(() => 'cut')
    const approval = await pendingApproval(id)
    await test.sql`update work set waits_since = now() - interval '1 minute' where task_id = ${id}`
    assert.equal((await test.send('POST', `${base}/work/heartbeat`, { token })).body.command, 'pause')
    stop.abort()
    assert.equal(await cut, 'cut')
    assert.equal((await test.send('POST', `${base}/work/park`, { token })).body.status, 'waiting')
    const { wait } = (await test.send('GET', `${base}/tasks/${id}`)).body
    assert.deepEqual([wait.reason, wait.approval_ids], ['approval', [approval.id]])
    await test.send('POST', `${base}/approvals/${approval.id}/resolve`, { body: { decision: 'approve' } })
    const result = await callTool(await claim(queue), 'current_time', { time_zone: 'UTC' })
    assert.notEqual(result.isError, true)
    const journal = await steps(id)
    assert.equal(journal.filter(({ type }: { type: string }) => type === 'tool_call').length, 1)
  })

  it('the tool gateway waits for the result of a client tool', async () => {
    const name = `refund_${++count}`
    await make('/tools', { name, description: 'Refunds.', kind: 'client', safety: 'keyed' })
    const { id, token } = await begin({ tools: [name] })
    const called = callTool(token, name, { order: '4711' })
    const { tool_call } = await make('/tool-calls/claim', { tools: [name], wait: 20 })
    assert.deepEqual([tool_call.task_id, tool_call.arguments], [id, { order: '4711' }])
    const body = { lease: tool_call.lease.token, output: { refund: 're_1' } }
    await make(`/tool-calls/${tool_call.id}/result`, body)
    assert.equal((await called).content[0]!.text, '{"refund":"re_1"}')
  })

  it('the tool gateway delegates to another agent and returns the output of its task', async () => {
    const worker = await make('/agents', { name: `echo-${++count}`, config: { model: 'builtin/echo' } })
    const { id, token } = await begin({ delegates: [{ agent_id: worker.id, name: 'echo' }] })
    const result = await callTool(token, 'delegate_echo', { input: 'What is the time?' })
    assert.match(result.content[0]!.text, /What is the time\?/)
    const { task } = (await test.send('GET', `${base}/tasks/${id}/tree`)).body
    assert.deepEqual(
      task.children.map(({ agent_id, status, depth }: Record<string, unknown>) => [agent_id, status, depth]),
      [[worker.id, 'completed', 1]],
    )
  })

  it('an unsafe call is made once if its connection breaks and the worker repeats it', async (t) => {
    const tool = await slowTool(t, 'unsafe')
    const { id, token } = await begin({ tools: [tool.name] })
    const stop = new AbortController()
    const cut = callTool(token, tool.name, {}, stop.signal).catch(() => 'cut')
    await tool.asked(1)
    stop.abort()
    assert.equal(await cut, 'cut')
    await eventually(() => leftInJournal(id))
    const again = callTool(token, tool.name)
    tool.answer('paid')
    assert.equal((await again).content[0]!.text, 'paid')
    assert.deepEqual([tool.requests.length, (await steps(id)).length], [1, 1])
  })

  /** Waits until the process has noticed that the worker disconnected. */
  const leftInJournal = async (id: string) => {
    const [row] = await test.sql<{ left: boolean }>`
      select coalesce((input ->> 'left')::boolean, false) as left from task_step where task_id = ${id} and index = 0`
    return row!.left
  }

  it('two equal concurrent calls are two calls', async (t) => {
    const tool = await slowTool(t, 'keyed')
    const { id, token } = await begin({ tools: [tool.name] })
    const both = [callTool(token, tool.name), callTool(token, tool.name)]
    await tool.asked(2)
    tool.answer()
    tool.answer()
    for (const one of both) assert.equal((await one).content[0]!.text, 'done')
    assert.equal((await steps(id)).length, 2)
  })

  for (const stream of [false, true])
    it(`a model call is paid once if its connection breaks and the worker repeats it, ${stream ? 'streamed' : 'whole'}`, async () => {
      const { id, token } = await begin()
      const gate = Promise.withResolvers<void>()
      const asked = models.requests.length
      models.next({ do: 'hold', pieces: stream ? 2 : 0, until: gate.promise, text: 'All of the answer.' })
      const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Tell me.' }], stream }
      const stop = new AbortController()
      const cut = post(token, 'v1/chat/completions', body, stop.signal).then(
        (reply) => reply.text(),
        () => 'cut',
      )
      await models.waitForRequests(asked + 1)
      stop.abort()
      await cut.catch(() => {})
      await eventually(() => leftInJournal(id))
      const again = post(token, 'v1/chat/completions', body)
      gate.resolve()
      const text = await (await again).text()
      if (stream)
        assert.equal(
          [...text.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join(''),
          'All of the answer.',
        )
      else assert.equal(JSON.parse(text).choices[0].message.content, 'All of the answer.')
      assert.deepEqual([models.requests.length - asked, (await steps(id)).length], [1, 1])
      const { usage } = (await test.send('GET', `${base}/tasks/${id}`)).body
      assert.equal(usage.by_model['openai/gpt-4o-mini'].calls, 1)
    })

  /** Lets the lease of the worker expire, and waits until the task is offered again. */
  const loseLease = async (id: string, queue: string) => {
    await test.sql`update work set lease_until = now() - interval '1 second' where task_id = ${id}`
    return claim(queue)
  }
  const contentOf = async (reply: Response) =>
    ((await reply.json()) as { choices: { message: { content: string } }[] }).choices[0]!.message.content
  const eventTypes = async (id: string) =>
    (await test.send('GET', `${base}/tasks/${id}/events?limit=100`)).body.events.map(
      ({ type }: { type: string }) => type,
    )

  it('a model call is paid once if the lease ends during it, and the next worker gets its result', async () => {
    const { id, queue, token } = await begin()
    const gate = Promise.withResolvers<void>()
    const asked = models.requests.length
    models.next({ do: 'hold', pieces: 0, until: gate.promise, text: 'Paid once.' })
    const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Say it.' }] }
    const first = post(token, 'v1/chat/completions', body)
    await models.waitForRequests(asked + 1)
    const second = await loseLease(id, queue)
    const joined = post(second, 'v1/chat/completions', body)
    gate.resolve()
    assert.equal(await contentOf(await joined), 'Paid once.')
    const refused = await first
    assert.deepEqual(
      [refused.status, ((await refused.json()) as { error: { code: string } }).error.code],
      [409, 'lease_lost'],
    )
    assert.deepEqual([models.requests.length - asked, (await steps(id)).length], [1, 1])
    const { usage } = (await test.send('GET', `${base}/tasks/${id}`)).body
    assert.equal(usage.by_model['openai/gpt-4o-mini'].calls, 1)
    assert.ok(!(await eventTypes(id)).includes('message.discarded'))
  })

  it('a replayed response of a model is the same, so a call that contains its items is paid once', async () => {
    const { id, queue, token } = await begin()
    const asked = models.requests.length
    const loop = async (lease: string) => {
      const input: object[] = [{ role: 'user', content: 'Look it up.' }]
      const answers: any[] = []
      for (let round = 1; round <= 3; round += 1) {
        const tools = [{ type: 'function', name: 'look_up', parameters: { type: 'object', properties: {} } }]
        const answer: any = await (await post(lease, 'v1/responses', { model: 'gpt-4o-mini', input, tools })).json()
        answers.push(answer)
        const calls = answer.output.filter(({ type }: any) => type === 'function_call')
        const results = calls.map(({ call_id }: any) => ({ type: 'function_call_output', call_id, output: 'found' }))
        input.push(...answer.output, ...results)
      }
      return answers
    }
    const called = { do: 'answer' as const, text: 'Looking.', tool_calls: [{ name: 'look_up', arguments: '{}' }] }
    models.next(called, called, { do: 'answer', text: 'Done.' })
    const first = await loop(token)
    assert.deepEqual(await loop(await loseLease(id, queue)), first)
    assert.equal(models.requests.length - asked, 3)
  })

  it('a worker has the call settings of its agent and the reasoning of earlier calls, unless its request sets the call settings', async () => {
    const model = 'anthropic/claude-sonnet-4-5'
    const { token } = await begin({ model, effort: 'medium', max_tokens: 4000 })
    const [asked, refused] = [models.requests.length, models.refused.length]
    const thought = (n: number) => ({
      do: 'answer' as const,
      reasoning: [{ text: `Thought ${n}`, signature: `sig-${n}==` }],
      text: `Round ${n}.`,
      tool_calls: [{ name: 'look_up', arguments: '{"n": 1 }' }],
    })
    models.next(thought(1), thought(2), { do: 'answer', text: 'Done.' }, { do: 'answer', text: 'At once.' })
    const tools = [{ type: 'function', function: { name: 'look_up', parameters: { type: 'object', properties: {} } } }]
    const messages: object[] = [{ role: 'user', content: 'Look it up.' }]
    const ask = async (more: object = {}) => {
      const answer: any = await (await post(token, 'v1/chat/completions', { model, messages, tools, ...more })).json()
      return answer.choices[0].message
    }
    for (let round = 1; round <= 2; round += 1) {
      const message = await ask()
      messages.push(message, { role: 'tool', tool_call_id: message.tool_calls[0].id, content: 'found' })
    }
    assert.equal((await ask()).content, 'Done.')
    const sent = models.requests.slice(asked).map(({ body }) => body as any)
    assert.deepEqual(
      sent.map(({ thinking }) => thinking?.budget_tokens),
      [2000, 2000, 2000],
    )
    const thinking = sent[2].messages.flatMap(({ role, content }: any) => (role === 'assistant' ? [content[0]] : []))
    assert.deepEqual(
      thinking.map(({ type, signature }: any) => [type, signature]),
      [
        ['thinking', 'sig-1=='],
        ['thinking', 'sig-2=='],
      ],
    )
    assert.match(JSON.stringify(sent[2]), /cache_control/)
    await ask({ messages: [{ role: 'user', content: 'At once.' }], reasoning_effort: 'none' })
    assert.equal((models.requests.at(-1)!.body as any).thinking?.type ?? 'disabled', 'disabled')
    assert.equal(models.refused.length, refused)
  })

  it('a model response after the end of the lease is stored if no other worker has the task', async () => {
    const { id, queue, token } = await begin()
    const gate = Promise.withResolvers<void>()
    const asked = models.requests.length
    models.next({ do: 'hold', pieces: 0, until: gate.promise, text: 'Kept.' })
    const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Keep it.' }] }
    const first = post(token, 'v1/chat/completions', body)
    await models.waitForRequests(asked + 1)
    await test.sql`update work set lease_until = now() - interval '1 second' where task_id = ${id}`
    gate.resolve()
    assert.equal((await first).status, 409)
    const replayed = await post(await claim(queue), 'v1/chat/completions', body)
    assert.equal(replayed.headers.get('cadre-replayed'), 'true')
    assert.equal(await contentOf(replayed), 'Kept.')
    assert.equal(models.requests.length - asked, 1)
  })

  for (const whose of ['task', 'agent'] as const)
    it(`the reservation of a call whose lease has ended stays in the budget of its ${whose} until the call ends`, async () => {
      const max_tokens = 1000
      const begun = await begin({}, whose === 'task' ? { budget: { max_tokens } } : {})
      const { id, queue, token } = begun
      if (whose === 'agent') await make('/budgets', { scope: 'agent', subject: begun.agent_id, max_tokens })
      const gate = Promise.withResolvers<void>()
      const asked = models.requests.length
      models.next({ do: 'hold', pieces: 0, until: gate.promise, text: 'Late.' })
      const ask = (content: string) => ({
        model: 'gpt-4o-mini',
        messages: [{ role: 'user', content }],
        max_tokens: 600,
      })
      const first = post(token, 'v1/chat/completions', ask('One.'))
      await models.waitForRequests(asked + 1)
      const second = await loseLease(id, queue)
      const refused = await post(second, 'v1/chat/completions', ask('Two.'))
      assert.deepEqual(
        [refused.status, ((await refused.json()) as { error: { code: string } }).error.code],
        [429, 'insufficient_quota'],
      )
      const parked = await post(second, 'park', {})
      assert.equal(((await parked.json()) as { status: string }).status, 'waiting')
      const wait = async () => (await test.send('GET', `${base}/tasks/${id}`)).body.wait?.reason
      assert.equal(await wait(), 'budget')
      const held = async () => {
        const [row] = await test.sql<{ hold: { tokens: number } | null }>`select hold from task where id = ${id}`
        return row!.hold?.tokens ?? 0
      }
      assert.ok((await held()) >= 600)
      gate.resolve()
      assert.equal((await first).status, 409)
      // The unused part of the reservation is free again, and the task is offered.
      const third = await claim(queue)
      assert.equal(models.requests.length, asked + 1)
      models.next({ do: 'answer', text: 'In time.' })
      assert.equal(await contentOf(await post(third, 'v1/chat/completions', ask('Two.'))), 'In time.')
      assert.equal(await held(), 0)
      const { usage } = (await test.send('GET', `${base}/tasks/${id}`)).body
      assert.equal(usage.by_model['openai/gpt-4o-mini'].calls, 2)
      if (whose === 'agent') {
        const [row] = await test.sql<{ spent_tokens: number; held_tokens: number }>`
          select spent_tokens, held_tokens from budget where subject = ${begun.agent_id}`
        assert.deepEqual(row, { spent_tokens: usage.input_tokens + usage.output_tokens, held_tokens: 0 })
      }
    })

  const endings = {
    'its worker completed': (token: string) => post(token, 'complete', { output: { content: 'Done.' } }),
    'its worker failed': (token: string) => post(token, 'fail', { error: { code: 'mine', message: 'Mine.' } }),
    'a person canceled by force': (_: string, id: string) =>
      test.send('POST', `${base}/tasks/${id}/cancel`, { body: { mode: 'force' } }),
  }
  for (const [how, endTask] of Object.entries(endings))
    it(`a call that is answered after ${how} the task is charged once`, async () => {
      const { id, token, agent_id } = await begin({}, { budget: { max_tokens: 1000 } })
      await make('/budgets', { scope: 'agent', subject: agent_id, max_tokens: 5000 })
      const gate = Promise.withResolvers<void>()
      const asked = models.requests.length
      models.next({ do: 'hold', pieces: 0, until: gate.promise, text: 'Late.' })
      const body = { model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'One.' }], max_tokens: 600 }
      const late = post(token, 'v1/chat/completions', body)
      await models.waitForRequests(asked + 1)
      await endTask(token, id)
      const read = async () => (await test.send('GET', `${base}/tasks/${id}`)).body
      const ended = await eventually(async () => {
        const task = await read()
        return task.finished_at !== null && task
      })
      assert.equal(ended.usage.input_tokens, 0)
      gate.resolve()
      assert.equal((await late).status, 409)
      const { usage, finished_at } = await read()
      assert.equal(usage.by_model['openai/gpt-4o-mini'].calls, 1)
      assert.ok(usage.output_tokens > 0)
      assert.equal(finished_at, ended.finished_at)
      const tokens = usage.input_tokens + usage.output_tokens
      const [budget] = await test.sql`select spent_tokens, held_tokens from budget where subject = ${agent_id}`
      assert.deepEqual(budget, { spent_tokens: tokens, held_tokens: 0 })
      const [hour] = await test.sql`
        select sum(calls)::int as calls, sum(input_tokens + output_tokens)::int as tokens from usage_hour where agent_id = ${agent_id}`
      assert.deepEqual(hour, { calls: 1, tokens })
      assert.match((await eventTypes(id)).at(-1), /^task\.(completed|failed|canceled)$/)
      assert.equal((await steps(id)).at(-1).status, 'failed')
    })

  it('the reservation of a call whose process died after the end of the lease is released', async () => {
    const { id, token } = await begin({}, { budget: { max_tokens: 1000 } })
    const step = { id: 'step_01jcm3x5v8f9a2b4c6d8e0g2h4', key: `model_${'0'.repeat(32)}_1` }
    const hold = { tokens: 700, cost_usd: 0, budget_ids: [], late: true }
    const input = { key: step.key, claim: 1, holder: 'worker_that_died', message_id: 'msg_1', messages: 1 }
    await post(token, 'park', { until: new Date(Date.now() + 60_000).toISOString() })
    await test.sql`
      insert into task_step (task_id, index, id, agent_id, type, status, attempt, failures, name, input, started_at)
      select id, 0, ${step.id}, agent_id, 'model_call', 'started', 1, 0, 'openai/gpt-4o-mini', ${JSON.stringify(input)}::jsonb, now()
      from task where id = ${id}`
    await test.sql`update work set holds = ${JSON.stringify({ [step.id]: hold })}::jsonb where task_id = ${id}`
    await test.sql`update task set hold = ${JSON.stringify(hold)}::jsonb where id = ${id}`
    await eventually(async () => {
      const [row] = await test.sql<{ hold: object | null; holds: object }>`
        select hold, holds from task t join work w on w.task_id = t.id where t.id = ${id}`
      return row!.hold === null && Object.keys(row!.holds).length === 0
    })
    assert.equal((await test.send('GET', `${base}/tasks/${id}`)).body.status, 'waiting')
  })

  it('an unsafe call is made once if the lease ends during it, and no person is asked', async (t) => {
    const tool = await slowTool(t, 'unsafe')
    const { id, queue, token } = await begin({ tools: [tool.name] })
    const first = callTool(token, tool.name)
    await tool.asked(1)
    const second = await loseLease(id, queue)
    const joined = callTool(second, tool.name)
    tool.answer('paid')
    assert.equal((await joined).content[0]!.text, 'paid')
    await first
    assert.deepEqual([tool.requests.length, (await steps(id)).length], [1, 1])
  })
})
