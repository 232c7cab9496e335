import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { eventually, startAnother, type Reply, startTestService, type TestService } from '../../../test/harness.ts'
import { rawSend } from '../../../test/raw-http.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let service: TestService
let project: string
let echo: string
const script = (...steps: unknown[]): string => JSON.stringify(steps)
const published = { doors: { mcp: { published: true, wait_seconds: 20 } } }

before(async () => {
  service = await startTestService({ CADRE_MCP_RESOLVE: 'on' })
  project = (await createProject(service.send, 'door')).path
  echo = await addAgent('Echo Agent', { model: 'builtin/echo', ...published }, 'Says what it hears.')
  await addAgent('echo-agent', { model: 'builtin/echo', ...published })
  await addAgent('script', { model: 'builtin/script', tools: ['current_time', 'request_input'], ...published })
  await addAgent('careful', {
    ...{ model: 'builtin/script', tools: ['current_time'], tool_policies: { current_time: 'ask' }, ...published },
  })
  await addAgent('quick', { model: 'builtin/script', doors: { mcp: { published: true, wait_seconds: 0 } } })
  await addAgent('sum', {
    model: 'builtin/echo',
    input_schema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
    ...published,
  })
  await addAgent('hidden', { model: 'builtin/echo' })
})
after(() => service.stop())

async function addAgent(name: string, config: object, description = ''): Promise<string> {
  const body = await createAgent(service.send, project, { name, config, description })
  return body.id
}

async function makeKey(...scopes: string[]): Promise<string> {
  const { body } = await service.send('POST', '/api/v1/auth/api-keys', { body: { name: scopes.join(), scopes } })
  return body.key
}

interface Connecting {
  key?: string
  path?: string
  mode?: 'auto' | 'legacy'
  elicit?: (params: any) => any
  /** Elicitation modes of the client; forms by default if it asks at all. */
  elicitation?: Record<string, Record<string, never>>
}

/** Connects a client of the protocol's library; closes it after the test. */
async function connect(t: { after(run: () => Promise<void>): void }, of: Connecting = {}): Promise<Client> {
  const { key = service.owner.api_key, path = '/mcp', mode = 'auto', elicit, elicitation = { form: {} } } = of
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: elicit ? { elicitation } : {}, versionNegotiation: { mode } },
  )
  if (elicit) client.setRequestHandler('elicitation/create', ({ params }) => elicit(params))
  const headers = { authorization: `Bearer ${key}` }
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${service.url}${path}`), { requestInit: { headers } }),
  )
  t.after(() => client.close())
  return client
}
const textOf = ({ content }: any): string => content[0].text
const call = (client: Client, name: string, args: object = {}): Promise<any> =>
  client.callTool({ name, arguments: args as Record<string, unknown> })

describe('tools of /mcp', () => {
  for (const mode of ['auto', 'legacy'] as const) {
    it(`/mcp lists the published agents and the tools for tasks in the revision of a ${mode} client`, async (t) => {
      const client = await connect(t, { mode })
      const { tools } = await client.listTools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        [
          ...['ask_echo_agent', 'ask_echo_agent_2', 'ask_script', 'ask_careful', 'ask_quick', 'ask_sum'],
          ...['list_agents', 'get_agent', 'run_agent', 'list_tasks', 'answer_task', 'list_approvals'],
          ...['get_task', 'wait_task', 'cancel_task', 'resolve_approval'],
        ],
      )
      assert.equal(tools[0]!.description, 'Says what it hears.')
      assert.equal(tools[0]!.annotations?.destructiveHint, false)
      const answer = await call(client, 'ask_echo_agent', { input: 'Hello there' })
      assert.equal(textOf(answer), 'Hello there')
      const { task_id, status, console_url } = answer.structuredContent
      assert.deepEqual([status, console_url.endsWith(task_id)], ['completed', true])
      const { body: task } = await service.send('GET', `${project}/tasks/${task_id}`)
      assert.equal(task.metadata.door.kind, 'mcp')
    })
  }

  it('/mcp of one agent lists only that agent and its tasks', async (t) => {
    const client = await connect(t, { path: `/mcp/agents/${echo}` })
    const { tools } = await client.listTools()
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['ask_echo_agent', 'get_task', 'wait_task', 'cancel_task'],
    )
    const other = await call(await connect(t), 'ask_script', { input: script({ text: 'other' }) })
    const refused = await call(client, 'get_task', { task_id: other.structuredContent.task_id })
    assert.deepEqual([refused.isError, textOf(refused).split(':')[0]], [true, 'task_not_found'])
  })

  it('an MCP tool of an agent with an input_schema accepts matching objects and refuses others', async (t) => {
    const client = await connect(t)
    const answer = await call(client, 'ask_sum', { a: 3 })
    assert.deepEqual(JSON.parse(textOf(answer)), { a: 3 })
    await assert.rejects(call(client, 'ask_sum', { a: 'three' }), (error: any) => error.code === -32602)
  })

  it('an MCP tool returns a handle for a long task, and wait_task returns its answer', async (t) => {
    const client = await connect(t)
    const open = await call(client, 'ask_quick', { input: script({ delay_ms: 300 }, { text: 'Done.' }) })
    const { task_id, status } = open.structuredContent
    assert.ok(status === 'queued' || status === 'running')
    assert.match(textOf(open), /wait_task/)
    const done = await call(client, 'wait_task', { task_id, seconds: 20 })
    assert.deepEqual([done.structuredContent.status, textOf(done)], ['completed', 'Done.'])
  })

  it('an MCP client that requests progress gets a notification per step, the first with the task id', async (t) => {
    const client = await connect(t)
    const received: any[] = []
    const params = { name: 'ask_script', arguments: { input: script({ delay_ms: 100 }, { text: 'x' }) } }
    const answer: any = await client.callTool(params, { onprogress: (progress) => void received.push(progress) })
    const { task_id } = answer.structuredContent
    assert.ok(received[0].message.includes(task_id), JSON.stringify(received))
  })

  it('progress reports every step exactly once, also for a task that has already ended', async (t) => {
    const client = await connect(t)
    const input = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'x' })
    const { structuredContent } = await call(client, 'ask_script', { input })
    const told: number[] = []
    const params = { name: 'wait_task', arguments: { task_id: structuredContent.task_id } }
    await client.callTool(params, { onprogress: ({ progress }) => void told.push(progress) })
    assert.equal(told.length, 3)
    assert.deepEqual(
      told,
      [...new Set(told)].toSorted((a, b) => a - b),
    )
  })

  it('a failed task is an error result of its MCP tool', async (t) => {
    const client = await connect(t)
    const input = script({ error: { code: 'provider_refused_request' } })
    const failed = await call(client, 'ask_script', { input })
    assert.equal(failed.isError, true)
    assert.match(textOf(failed), /provider_refused_request/)
  })

  it('MCP tools find agents and cancel tasks with a receipt', async (t) => {
    const client = await connect(t)
    const { agents } = (await call(client, 'list_agents', { search: 'HIDDEN' })).structuredContent
    assert.deepEqual(
      agents.map(({ agent }: any) => agent),
      ['door/hidden'],
    )
    const open = await call(client, 'run_agent', {
      ...{ agent: 'script', background: true },
      input: script({ text: 'half' }, { delay_ms: 600_000 }, { text: 'whole' }),
    })
    const { task_id } = open.structuredContent
    await call(client, 'cancel_task', { task_id })
    const ended = await call(client, 'wait_task', { task_id })
    assert.equal(ended.structuredContent.status, 'canceled')
    const again = await call(client, 'cancel_task', { task_id })
    assert.deepEqual(again.structuredContent.receipt, { effects: [], uncertain: [] })
  })
})

describe('questions of tasks', () => {
  const asks = script(
    { tool_calls: [{ name: 'request_input', arguments: { question: 'Which colour?' } }] },
    { text: 'You said {{tool_result}}.' },
  )
  const calls = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Now.' })

  for (const mode of ['auto', 'legacy'] as const)
    it(`the question of a task goes to the user within one call in the revision of a ${mode} client`, async (t) => {
      const asked: string[] = []
      const client = await connect(t, {
        mode,
        elicit: ({ message }) => (asked.push(message), { action: 'accept', content: { answer: 'blue' } }),
      })
      const answer = await call(client, 'ask_script', { input: asks })
      assert.deepEqual([textOf(answer), asked], ['You said blue.', ['Which colour?']])
    })

  it('questions of a task go to the user one after the other on the stream of one call', async (t) => {
    const asked: string[] = []
    const client = await connect(t, {
      mode: 'legacy',
      elicitation: {},
      elicit: ({ message }) => (asked.push(message), { action: 'accept', content: { answer: `a${asked.length}` } }),
    })
    const question = (text: string) => ({ tool_calls: [{ name: 'request_input', arguments: { question: text } }] })
    const input = script(question('First?'), question('Second?'), { text: 'Last: {{tool_result}}.' })
    const answer = await call(client, 'ask_script', { input })
    assert.deepEqual([textOf(answer), asked], ['Last: a2.', ['First?', 'Second?']])
  })

  it('a declined question stays open, and the call returns the handle immediately', async (t) => {
    const client = await connect(t, { mode: 'legacy', elicit: () => ({ action: 'decline' }) })
    const before = performance.now()
    const open = await call(client, 'ask_script', { input: asks })
    assert.ok(performance.now() - before < 15_000)
    assert.deepEqual([open.structuredContent.status, open.structuredContent.wait.reason], ['waiting', 'input'])
    const { task_id } = open.structuredContent
    assert.equal(textOf(await call(client, 'answer_task', { task_id, content: 'red' })), 'You said red.')
  })

  it('a question that is declined at another process stays open, and the call ends immediately', async (t) => {
    const second = await startAnother(service, { CADRE_MCP_RESOLVE: 'on' })
    t.after(() => second.stop())
    const headers = {
      ...{ accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
      ...{ 'mcp-protocol-version': '2025-11-25', authorization: `Bearer ${service.owner.api_key}` },
    }
    const post = (url: string, body: object, more: object = {}) =>
      fetch(`${url}/mcp`, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) })
    const clientInfo = { name: 'x', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: {} }, clientInfo }
    const started = await post(service.url, { jsonrpc: '2.0', id: 1, method: 'initialize', params })
    const session = { 'mcp-session-id': started.headers.get('mcp-session-id')! }
    const called = { name: 'ask_script', arguments: { input: asks } }
    const asking = await post(service.url, { jsonrpc: '2.0', id: 2, method: 'tools/call', params: called }, session)
    const before = performance.now()
    let read = ''
    let declined: Promise<Response> | undefined
    for await (const chunk of asking.body!.pipeThrough(new TextDecoderStream())) {
      read += chunk
      const question = /^data: (.*"elicitation\/create".*)$/m.exec(read)?.[1]
      if (question !== undefined)
        declined ??= post(
          second.url,
          { jsonrpc: '2.0', id: JSON.parse(question).id, result: { action: 'decline' } },
          session,
        )
    }
    assert.equal((await declined)?.status, 202)
    // The call would have waited for 50 seconds.
    assert.ok(performance.now() - before < 25_000)
    assert.match(read, /"id":2/)
    assert.match(read, /"reason":"input"/)
  })

  it('a client that can only open pages gets no questions', async (t) => {
    for (const mode of ['auto', 'legacy'] as const) {
      const client = await connect(t, { mode, elicitation: { url: {} }, elicit: () => assert.fail('asked') })
      assert.equal((await call(client, 'ask_script', { input: asks })).structuredContent.wait.reason, 'input')
    }
  })

  it('an answer is accepted by another process after the call has ended, and only from the asked user', async (t) => {
    const second = await startAnother(service, { CADRE_MCP_RESOLVE: 'on' })
    t.after(() => second.stop())
    const accept = { accept: 'application/json, text/event-stream' }
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'x', version: '1' },
    }
    const started = await service.send('POST', '/mcp', {
      body: { jsonrpc: '2.0', id: 1, method: 'initialize', params },
      headers: accept,
    })
    const session = started.headers.get('mcp-session-id')!
    assert.match(session, /^[\x21-\x7e]+$/)
    const headers = { ...accept, 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' }
    const asking = await fetch(`${service.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', authorization: `Bearer ${service.owner.api_key}` },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 2, method: 'tools/call' },
        params: { name: 'ask_script', arguments: { input: asks } },
      }),
    })
    let read = ''
    let asked: any
    for await (const chunk of asking.body!.pipeThrough(new TextDecoderStream())) {
      read += chunk
      const data = /^data: (.*"elicitation\/create".*)$/m.exec(read)?.[1]
      if (data !== undefined) {
        asked = JSON.parse(data)
        break
      }
    }
    // The stream has ended, but the question is open.
    const answer = { jsonrpc: '2.0', id: asked.id, result: { action: 'accept', content: { answer: 'green' } } }
    const narrow = await makeKey('agents:read')
    assert.equal((await service.send('POST', '/mcp', { body: answer, headers, key: narrow })).status, 403)
    const forged = { ...answer, id: `${asked.id.slice(0, -4)}AAAA` }
    const send = (body: object) =>
      fetch(`${second.url}/mcp`, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', authorization: `Bearer ${service.owner.api_key}` },
        body: JSON.stringify(body),
      })
    await send(forged)
    const task_id = asked.id.split('.')[0]
    assert.equal((await service.send('GET', `${project}/tasks/${task_id}`)).body.status, 'waiting')
    assert.equal((await send(answer)).status, 202)
    const client = await connect(t)
    assert.equal(textOf(await call(client, 'wait_task', { task_id, seconds: 20 })), 'You said green.')
  })

  it('at the address of one agent, which has no answer_task, a question refers to the console', async (t) => {
    const { body } = await service.send('GET', `${project}/agents?search=script`)
    const { id } = body.agents.find(({ name }: { name: string }) => name === 'script')
    const open = await call(await connect(t, { path: `/mcp/agents/${id}` }), 'ask_script', { input: asks })
    const { console_url } = open.structuredContent
    assert.ok(
      textOf(open).endsWith(`Which colour? A person answers it at ${console_url}. Then call wait_task with this id.`),
    )
  })

  it('answer_task answers a question for a client that cannot ask its user', async (t) => {
    const client = await connect(t)
    const open = await call(client, 'ask_script', { input: asks })
    assert.match(textOf(open), /Which colour\?.*answer_task/)
    const { task_id } = open.structuredContent
    assert.equal(textOf(await call(client, 'answer_task', { task_id, content: 'red' })), 'You said red.')
  })

  for (const mode of ['auto', 'legacy'] as const)
    it(`approvals of a call go to users who may approve, and decisions are in the audit log (${mode})`, async (t) => {
      const client = await connect(t, {
        ...{ mode, elicit: () => ({ action: 'accept', content: { decision: 'approve' } }) },
      })
      const answer = await call(client, 'ask_careful', { input: calls })
      assert.equal(textOf(answer), 'Now.')
      const [entry] = await service.sql<{ detail: any }>`
      select detail from audit where action = 'approval.resolved' and detail->>'task_id' = ${answer.structuredContent.task_id}`
      assert.deepEqual(
        [entry!.detail.tool, entry!.detail.kind, entry!.detail.decision],
        ['current_time', 'tool_call', 'approve'],
      )
    })

  it('a credential without the scope for approvals gets no approval questions', async (t) => {
    const key = await makeKey('tasks:write', 'agents:read')
    const client = await connect(t, { key, elicit: () => assert.fail('asked') })
    const open = await call(client, 'ask_careful', { input: calls })
    assert.equal(open.structuredContent.wait.reason, 'approval')
    assert.match(textOf(open), /\/p\/proj_\d+\/tasks\/task_/)
    const approval_id = open.structuredContent.wait.approval_ids[0]
    await assert.rejects(call(client, 'resolve_approval', { approval_id, decision: 'approve' }))
    const owner = await connect(t)
    await call(owner, 'resolve_approval', { approval_id, decision: 'approve' })
    const { task_id } = open.structuredContent
    assert.equal(textOf(await call(owner, 'wait_task', { task_id })), 'Now.')
  })
})

describe('refusals of /mcp', () => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  const accept = { accept: 'application/json, text/event-stream' }

  it('a refused MCP request says where to get a token and which scope is missing', async () => {
    const none = await service.send('POST', '/mcp', { key: null, body: message, headers: accept })
    assert.equal(none.status, 401)
    const challenge = none.headers.get('www-authenticate')!
    assert.match(challenge, /^Bearer resource_metadata="[^"]+\/\.well-known\/oauth-protected-resource\/mcp"/)
    assert.match(challenge, /scope="agents:read tasks:write"/)
    const metadata = await fetch(/resource_metadata="([^"]+)"/.exec(challenge)![1]!)
    assert.equal(((await metadata.json()) as any).resource, `${service.url}/mcp`)
    const key = await makeKey('agents:read')
    const params = { name: 'run_agent', arguments: { agent: 'script', input: 'x' } }
    const body = { ...message, method: 'tools/call', params }
    const missing = await service.send('POST', '/mcp', { key, body, headers: accept })
    assert.equal(missing.status, 403)
    assert.match(
      missing.headers.get('www-authenticate')!,
      /error="insufficient_scope".*scope="agents:read tasks:write"/,
    )
    assert.equal(missing.body.error.data.code, 'insufficient_scope')
  })

  it('/mcp refuses cookies, foreign hosts, pages of other origins, and all methods except POST', async () => {
    const headers = { ...accept, 'content-type': 'application/json', 'x-api-key': service.owner.api_key }
    const to = (more: Record<string, string>) =>
      rawSend(service.url, {
        method: 'POST',
        path: '/mcp',
        headers: { ...headers, ...more },
        body: JSON.stringify(message),
      })
    assert.equal((await to({ host: 'evil.example.com' })).status, 403)
    assert.equal((await to({ origin: 'https://evil.example.com' })).status, 403)
    assert.equal((await to({ origin: 'http://localhost:3000' })).status, 200)
    for (const method of ['GET', 'DELETE']) assert.equal((await service.send(method, '/mcp')).status, 405)
  })

  it('the error for a malformed MCP message has the form of the protocol', async () => {
    const bad = await service.send('POST', '/mcp', {
      body: '{',
      headers: { ...accept, 'content-type': 'application/json' },
    })
    assert.deepEqual([bad.status, bad.body.error.code], [400, -32700])
    const odd = { ...message, method: 'tools/call', params: { name: 'get_task', arguments: { task_id: 'a\u0000' } } }
    const nul = await service.send('POST', '/mcp', { body: odd, headers: accept })
    assert.deepEqual([nul.status, nul.body.jsonrpc], [400, '2.0'])
    const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"?"}}')
    bytes[bytes.indexOf('?')] = 0xff
    const common = { ...accept, 'content-type': 'application/json', authorization: `Bearer ${service.owner.api_key}` }
    for (const [headers, code] of [
      [common, -32700],
      [{ ...common, 'content-encoding': 'gzip' }, -32600],
    ] as const) {
      const answer = await fetch(`${service.url}/mcp`, { method: 'POST', headers, body: bytes })
      const { error } = (await answer.json()) as any
      assert.deepEqual([answer.status, error.code], [400, code])
    }
    const clientInfo = { name: 'x', version: 7 }
    for (const [method, params] of Object.entries({
      initialize: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
      'tools/list': { cursor: 7 },
    })) {
      const body = { jsonrpc: '2.0', id: 1, method, params }
      const { body: text } = await service.send('POST', '/mcp', { body, headers: accept })
      assert.match(text, /"code":-32602,"message":"params\.(clientInfo\.version|cursor): [^"]*expected string/)
    }
  })

  it('/mcp hides agents and tasks of other organizations', async (t) => {
    const client = await connect(t)
    const answer = await call(client, 'ask_echo_agent', { input: 'mine' })
    const { task_id } = answer.structuredContent
    const number = Number(project.split('/').at(-1))
    const [mine] = await service.sql<{ org_id: string }>`select org_id from project where id = ${number}`
    await service.sql`insert into organization (id, name) values ('org_other', 'Other')`
    await service.sql`update project set org_id = 'org_other' where id = ${number}`
    try {
      const { tools } = await client.listTools()
      assert.ok(!tools.some(({ name }) => name.startsWith('ask_')))
      for (const name of ['get_task', 'wait_task', 'cancel_task'])
        assert.match(textOf(await call(client, name, { task_id })), /^task_not_found/)
      assert.match(textOf(await call(client, 'run_agent', { agent: echo, input: 'x' })), /^agent_not_found/)
      assert.deepEqual((await call(client, 'list_tasks')).structuredContent.tasks, [])
    } finally {
      await service.sql`update project set org_id = ${mine!.org_id} where id = ${number}`
    }
  })
})

describe('an answer of /mcp', () => {
  const asked = async (revision: string, name: string, args: object): Promise<Reply> => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': revision,
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    const params = { name, arguments: args, ...(revision === '2026-07-28' && { _meta }) }
    return service.send('POST', '/mcp', {
      headers: {
        ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': revision },
        ...{ 'mcp-method': 'tools/call', 'mcp-name': name },
      },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    })
  }

  for (const revision of ['2026-07-28', '2025-11-25'])
    it(`a response of /mcp has its task id in a header in the revision ${revision}`, async () => {
      const made = await asked(revision, 'ask_echo_agent', { input: 'x' })
      const task_id = made.headers.get('cadre-task-id')
      assert.match(task_id ?? '', /^task_/)
      assert.ok(JSON.stringify(made.body).includes(task_id!))
      const read = await asked(revision, 'get_task', { task_id })
      assert.equal(read.headers.get('cadre-task-id'), task_id)
      const none = await asked(revision, 'list_agents', {})
      assert.equal(none.headers.get('cadre-task-id'), null)
    })

  it('an MCP error names the invalid argument once', async () => {
    const { body } = await asked('2026-07-28', 'ask_echo_agent', {})
    assert.deepEqual(body.error, { code: -32602, message: 'input is required' })
    const { error } = (await asked('2026-07-28', 'get_task', { task: 'task_1' })).body
    assert.deepEqual(error, { code: -32602, message: 'task is not an argument of get_task. Allowed: task_id' })
  })
})

describe('the Tasks extension', () => {
  const forms = { elicitation: { form: {} } }
  const extension = 'io.modelcontextprotocol/tasks'
  const meta = (capabilities: object = {}) => ({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': { extensions: { [extension]: {} }, ...capabilities },
  })
  const send = async (method: string, params: Record<string, unknown>, capabilities: object = {}) => {
    const name = (params['name'] ?? params['taskId']) as string | undefined
    const { body } = await service.send('POST', '/mcp', {
      headers: {
        ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2026-07-28' },
        ...{ 'mcp-method': method, ...(name !== undefined && { 'mcp-name': name }) },
      },
      body: { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta(capabilities) } },
    })
    return body
  }

  it('the Tasks extension is used only for clients that declare it', async () => {
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { error } = await send(method, { taskId: 'task_nothing' }, { extensions: {} })
      assert.deepEqual([error.code, error.data.requiredCapabilities], [-32021, { extensions: { [extension]: {} } }])
    }
  })

  it('with the Tasks extension a call returns the task immediately, and polling returns its result', async () => {
    const { result: made } = await send('tools/call', {
      name: 'ask_script',
      arguments: { input: script({ text: 'Done.' }) },
    })
    assert.deepEqual([made.resultType, made.status, made.pollIntervalMs], ['task', 'working', 1000])
    const done = await eventually(async () => {
      const { result } = await send('tasks/get', { taskId: made.taskId })
      return result.status === 'completed' && result
    })
    assert.equal(textOf(done.result), 'Done.')
  })

  it('the Tasks extension asks for input, accepts it once, and cancels tasks', async () => {
    const input = script(
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which colour?' } }] },
      { text: 'You said {{tool_result}}.' },
      { delay_ms: 600_000 },
    )
    const { result: made } = await send('tools/call', { name: 'ask_script', arguments: { input } })
    const open = await eventually(async () => {
      const { result } = await send('tasks/get', { taskId: made.taskId }, forms)
      return result.status === 'input_required' && result
    })
    const [key] = Object.keys(open.inputRequests)
    assert.match(key!, /^input_/)
    const inputResponses = { [key!]: { action: 'accept', content: { answer: 'green' } } }
    await send('tasks/update', { taskId: made.taskId, inputResponses })
    assert.equal((await send('tasks/get', { taskId: made.taskId }, forms)).result.status, 'working')
    await send('tasks/cancel', { taskId: made.taskId })
    const ended = await eventually(async () => {
      const { result } = await send('tasks/get', { taskId: made.taskId })
      return result.status === 'cancelled' && result
    })
    assert.equal(ended.taskId, made.taskId)
    assert.equal((await send('tasks/get', { taskId: 'task_nothing' })).error.code, -32602)
  })

  it('with the Tasks extension a call ends with question and handle if the client cannot ask its user', async () => {
    const input = script(
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which colour?' } }] },
      { text: 'You said {{tool_result}}.' },
    )
    const { result: made } = await send('tools/call', { name: 'ask_script', arguments: { input } })
    const over = await eventually(async () => {
      const { result } = await send('tasks/get', { taskId: made.taskId })
      assert.notEqual(result.status, 'input_required')
      return result.status === 'completed' && result
    })
    const { status, question } = over.result.structuredContent
    assert.deepEqual([status, question, over.inputRequests], ['waiting', 'Which colour?', undefined])
    const answer = { task_id: made.taskId, content: 'green' }
    const { result } = await send('tools/call', { name: 'answer_task', arguments: answer })
    assert.match(textOf(result), /^You said .*green/)
  })

  it('an answer resolves the question that it names, even if another one was asked before', async () => {
    const asks = (asked: string) => ({ name: 'request_input', arguments: { question: asked } })
    const input = script({ tool_calls: [asks('First?'), asks('Second?')] }, { text: 'Thanks.' })
    const { result: made } = await send('tools/call', { name: 'ask_script', arguments: { input } })
    const { taskId } = made
    const requests = async (): Promise<[string, any][]> =>
      Object.entries((await send('tasks/get', { taskId }, forms)).result.inputRequests ?? {})
    const open = await eventually(async () => {
      const found = await requests()
      return found.length === 2 && found
    })
    const keyOf = (message: string): string => open.find(([, asked]) => asked.params.message === message)![0]
    const answer = (message: string) => ({ [keyOf(message)]: { action: 'accept', content: { answer: message } } })
    await send('tasks/update', { taskId, inputResponses: answer('Second?') })
    assert.deepEqual(
      (await requests()).map(([key]) => key),
      [keyOf('First?')],
    )
    await send('tasks/update', { taskId, inputResponses: answer('First?') })
    await eventually(async () => (await send('tasks/get', { taskId }, forms)).result.status === 'completed')
    const { body } = await service.send('GET', `${project}/tasks/${taskId}/steps`)
    assert.deepEqual(
      body.steps.filter(({ type }: any) => type === 'wait').map((step: any) => step.output.content),
      ['First?', 'Second?'],
    )
  })
})

describe('closing the connection of a call', () => {
  const slow = script({ text: 'half' }, { delay_ms: 600_000 }, { text: 'whole' })
  const newest = async () =>
    (
      await service.sql<{
        id: string
        status: string
      }>`select id, status from task order by created_at desc, id desc limit 1`
    )[0]!

  it('closing the connection of a call cancels its task unless the client has the handle', async (t) => {
    const before_ = (await newest()).id
    const client = await connect(t)
    const leaving = new AbortController()
    const left = client.callTool({ name: 'ask_script', arguments: { input: slow } }, { signal: leaving.signal })
    const task = await eventually(async () => {
      const one = await newest()
      return one.id !== before_ && one.status === 'running' && one
    })
    leaving.abort()
    await assert.rejects(left)
    await eventually(async () => (await newest()).status === 'canceled')
    assert.equal((await newest()).id, task.id)
    const kept = await call(client, 'ask_script', { input: slow, background: true })
    await client.close()
    const again = await connect(t)
    const { task_id } = kept.structuredContent
    const now = await call(again, 'get_task', { task_id })
    assert.notEqual(now.structuredContent.status, 'canceled')
    await call(again, 'cancel_task', { task_id })
  })
})
