import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { makeKey, makePerson, makeSession, makeToken, ownerOf, type Credential } from '../actors.ts'
import { startFakeModelServer, type FakeModelServer } from '../fake-models/fake-model-server.ts'
import { eventually, startTestService, type Send, type TestService } from '../harness.ts'

/** A request that reached a server outside of the service. */
export interface Reached {
  path: string
  headers: IncomingMessage['headers']
  body: string
}

/** Server that the agents and webhooks of a test call. */
export interface Outside {
  url: string
  reached: Reached[]
  /** Paths that are not answered; the others get 200, and those of `failing` 500. */
  silent: Set<string>
  failing: Set<string>
  close(): Promise<void>
}

export async function startOutside(): Promise<Outside> {
  const [reached, silent, failing]: [Reached[], Set<string>, Set<string>] = [[], new Set(), new Set()]
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      const path = request.url ?? ''
      reached.push({ path, headers: request.headers, body })
      if (silent.has(path)) return
      response.writeHead(failing.has(path) ? 500 : 200, { 'content-type': 'text/plain' }).end('done')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reached,
    silent,
    failing,
    async close() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

/** Tasks of an installation, each in the state that its name says. */
export interface FullTasks {
  completed: string
  failed: string
  canceled: string
  /** Waits for the approval of its call of `current_time`. */
  approval: string
  /** In the thread of the previous task. */
  behindApproval: string
  /** Waits for a message. */
  input: string
  /** Waits for the budget of its agent. */
  budget: string
  /** Wait for a time far away, and for one that comes soon. */
  timer: string
  shortTimer: string
  /** Its model has not responded. */
  calling: string
  /** Its unsafe tool has not responded. */
  unsafe: string
  /** There is no slot for it. */
  queued: string
  /** Its agent may only run one at a time, and does. */
  gated: string
  /** Another task has its concurrency key. */
  keyed: string
  /** Scheduled in an hour, and soon. */
  later: string
  soon: string
  /** Its agent is paused. */
  paused: string
}

/** An installation with every kind of data, at a time when nothing changes. */
export interface FullInstallation {
  test: TestService
  outside: Outside
  models: FakeModelServer
  /** Settings that a service needs to continue it. */
  env: Record<string, string>
  project: string
  agents: Record<'echo' | 'script' | 'slow' | 'paused' | 'poor', string>
  tasks: FullTasks
  schedule: string
  /** Its receiver fails: all its deliveries are pending. */
  webhook: { id: string; secret: string }
  budget: string
  credentials: Record<'api_key' | 'token' | 'session', Credential>
  stop(): Promise<void>
}

const script = (...steps: unknown[]): string => JSON.stringify(steps)

/** Creates it, by the API where possible. All slots are taken, so queued tasks stay queued. */
export async function makeFullInstallation(): Promise<FullInstallation> {
  const [outside, models] = [await startOutside(), await startFakeModelServer()]
  const closeOutside = async (): Promise<void> => void (await Promise.all([outside.close(), models.close()]))
  const env = {
    CADRE_WORKER_SLOTS: '2',
    CADRE_EGRESS_ALLOW: 'loopback',
    OPENAI_BASE_URL: models.base_url,
    OPENAI_API_KEY: 'sk-of-the-provider',
  }
  const test = await startTestService(env)
  // A test may stop the service before everything else.
  const stopService = test.service.stop
  let stopped: Promise<void> | undefined
  test.service.stop = () => (stopped ??= stopService())
  const stop = (): Promise<void> => test.stop().then(closeOutside)
  try {
    return { ...(await fill(test, outside, models)), test, outside, models, env, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

async function fill(
  test: TestService,
  outside: Outside,
  models: FakeModelServer,
): Promise<Omit<FullInstallation, 'test' | 'outside' | 'models' | 'env' | 'stop'>> {
  const make = maker(test.send)
  const { id: project_id } = await make('/api/v1/projects', { name: 'support' })
  await make('/api/v1/projects', { name: 'another' })
  const project = `/api/v1/projects/${project_id}`

  outside.failing.add('/hook')
  const hook = {
    url: `${outside.url}/hook`,
    events: ['agent.completed', 'project.deleted'],
    secret: 'a secret of the receiver',
  }
  const { id: webhook_id } = await make('/api/v1/webhooks', hook)
  await make(`${project}/files`, { any: 'file' })
  await make('/api/v1/model-providers', {
    name: 'acme',
    base_url: `${outside.url}/own/v1`,
    api_key: 'the-key-of-a-model-provider',
    projects: [`proj_${project_id}`],
  })
  await make(`${project}/credentials`, {
    name: 'TOKEN',
    value: 'the value of a credential',
    allowed_hosts: ['127.0.0.1'],
  })
  await make(`${project}/credentials`, {
    name: 'ISSUED',
    type: 'oauth2',
    allowed_hosts: ['127.0.0.1'],
    grant: 'authorization_code',
    authorization_endpoint: 'https://id.example.com/authorize',
    token_endpoint: 'https://id.example.com/token',
    client_id: 'cadre',
    client_secret: 'the secret of a client',
  })
  for (const [name, path] of [
    ['pay', '/pay'],
    ['note', '/note'],
  ] as const) {
    await make(`${project}/tools`, {
      name,
      description: 'A request.',
      kind: 'http',
      safety: name === 'pay' ? 'unsafe' : 'keyed',
      parameters: { type: 'object', properties: {} },
      http: {
        method: 'POST',
        url: `${outside.url}${path}`,
        headers: { authorization: 'Bearer ${credentials.TOKEN}', 'x-region': '${env.REGION}' },
      },
    })
  }
  const makeAgent = async (name: string, config: object, more: object = {}): Promise<string> => {
    const { id } = await make(`${project}/agents`, { name, config, ...more })
    await eventually(async () => (await test.send('GET', `${project}/agents/${id}`)).body.status === 'running')
    return id
  }
  const agents = {
    echo: await makeAgent(
      'echo',
      { model: 'builtin/echo' },
      { description: 'Says it again.', metadata: { team: 'ä' } },
    ),
    script: await makeAgent('script', {
      model: 'builtin/script',
      tools: ['current_time', 'wait', 'request_input', 'pay', 'note'],
      tool_policies: { current_time: 'ask' },
      environment_variables: { REGION: 'eu-central-7' },
    }),
    slow: await makeAgent('slow', { model: 'openai/gpt-4o-mini', max_concurrent_tasks: 1 }),
    paused: await makeAgent('paused', { model: 'builtin/echo' }),
    poor: await makeAgent('poor', { model: 'builtin/echo' }),
  }
  const changed = await test.send('PUT', `${project}/agents/${agents.echo}`, { body: { description: 'Once more.' } })
  assert.equal(changed.status, 200)
  const { id: budget } = await make(`${project}/budgets`, { scope: 'agent', subject: agents.poor, max_tokens: 1 })

  // Its time has come once, and its task waits with its agent.
  const { id: schedule } = await make(`${project}/schedules`, {
    agent_id: agents.paused,
    name: 'leap',
    cron: '0 0 29 2 *',
    input: 'scheduled',
  })
  await test.send('POST', `${project}/agents/${agents.paused}/pause`)
  await test.sql`update schedule set next_run_at = now() - interval '1 second' where id = ${schedule}`

  // Its filter leaves out what came.
  const filter = [{ path: 'body.a', op: 'exists' }]
  const trigger = { agent_id: agents.echo, name: 'news', source: 'bearer', secret: 'a secret of the sender', filter }
  const { url: hook_url } = await make(`${project}/triggers`, trigger)
  const headers = { authorization: `Bearer ${trigger.secret}`, 'content-type': 'application/json' }
  assert.equal((await fetch(hook_url, { method: 'POST', headers, body: '{"b": 1}' })).status, 202)

  const give = async (agent: keyof typeof agents, input: string, more: object = {}): Promise<string> =>
    (await make(`${project}/agents/${agents[agent]}/tasks`, { input, ...more })).id
  const until = async (id: string, status: string, reason?: string): Promise<void> =>
    void (await eventually(async () => {
      const { body } = await test.send('GET', `${project}/tasks/${id}`)
      return body.status === status && (reason === undefined || body.wait?.reason === reason)
    }))
  const call = (name: string, args: object = {}): string =>
    script({ tool_calls: [{ name, arguments: args }] }, { text: 'After {{tool_result}}.' })

  const completed = await give('echo', 'hello', { metadata: { a: 1 } })
  await until(completed, 'completed')
  models.next({ do: 'status', status: 401, message: 'no such key' })
  const failed = await give('slow', 'are you there?')
  await until(failed, 'failed')
  const canceled = await give('script', call('wait', { seconds: 3000 }))
  await until(canceled, 'waiting', 'timer')
  await test.send('POST', `${project}/tasks/${canceled}/cancel`, { body: { reason: 'Not needed.' } })
  const { id: thread_id } = await make(`${project}/threads`, { agent_id: agents.script })
  const approval = await give('script', call('current_time'), { thread_id })
  await until(approval, 'waiting', 'approval')
  const behindApproval = await give('script', script({ text: 'second' }), { thread_id })
  const input = await give('script', call('request_input', { question: 'Which one?' }))
  await until(input, 'waiting', 'input')
  const budgeted = await give('poor', 'too much')
  await until(budgeted, 'waiting', 'budget')
  const timer = await give('script', call('wait', { seconds: 86_400 }), { concurrency_key: 'one' })
  await until(timer, 'waiting', 'timer')
  const keyed = await give('echo', 'after the timer', { concurrency_key: 'one' })

  await eventually(
    async () => (await test.send('GET', `${project}/schedules/${schedule}`)).body.tasks_created === 1,
    30_000,
  )
  const paused = await give('paused', 'when it runs again')

  const asked = models.requests.length
  models.always({ do: 'stall', pieces: 1, text: 'never finished' })
  const calling = await give('slow', 'think')
  await models.waitForRequests(asked + 1)
  const gated = await give('slow', 'then this')
  outside.silent.add('/pay')
  const shortTimer = await give('script', call('wait', { seconds: 15 }))
  await until(shortTimer, 'waiting', 'timer')
  const unsafe = await give('script', call('pay'))
  await eventually(async () => outside.reached.some(({ path }) => path === '/pay'))
  const queued = await give('script', call('note'))
  const soon = await give('echo', 'soon', { run_after: new Date(Date.now() + 10_000).toISOString() })
  const later = await give('echo', 'later', { run_after: new Date(Date.now() + 3_600_000).toISOString() })

  // The third attempt is minutes away.
  await eventually(
    async () =>
      (await test.sql`select from delivery`).length > 0 &&
      (await test.sql`select from delivery where attempts <> 2 or status <> 'pending'`).length === 0,
    30_000,
  )

  const person = await makePerson(test, 'member', test.owner.org_id)
  await makeKey(test, person, ['read'])
  const owner = ownerOf(test)
  const credentials = {
    api_key: { key: test.owner.api_key },
    token: { token: (await makeToken(test, owner, ['admin'])).token },
    session: { cookie: (await makeSession(test, owner)).cookie },
  }
  return {
    project,
    agents,
    tasks: {
      ...{ completed, failed, canceled, approval, behindApproval, input, budget: budgeted, timer, shortTimer },
      ...{ calling, unsafe, queued, gated, keyed, later, soon, paused },
    },
    schedule,
    webhook: { id: webhook_id, secret: hook.secret },
    budget,
    credentials,
  }
}

/** Creates a resource by the API and returns the response. */
export function maker(send: Send): (path: string, body?: unknown) => Promise<any> {
  return async (path, body) => {
    const reply = await send('POST', path, { body })
    assert.ok(reply.status < 300, `${path} ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply.body
  }
}
