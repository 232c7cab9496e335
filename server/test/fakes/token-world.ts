import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { makeSession, ownerOf, type Person } from '../actors.ts'
import { startLocalServer } from './local-server.ts'
import { issuerClients, TokenIssuer, type IssuerOptions } from './token-issuer.ts'
import { eventually, type Reply, type TestService } from '../harness.ts'

/** A server that tools call, and what its callers' tokens were worth when they came. */
export interface TokenServer {
  url: string
  calls: { authorization: string | undefined; verdict: 'good' | 'expired' | 'unknown'; key: string | undefined }[]
  /** Refuses the next calls with 401, whatever their tokens are. */
  refuses: number
}

/** A project of a service whose tools are called with tokens of an issuer. */
export interface TokenWorld {
  base: string
  /** Sends a request below the project. */
  call(method: string, path: string, body?: unknown): Promise<Reply>
  /** A credential of type `oauth2`; by the client that needs no person where nothing else is said. */
  credential(issuer: TokenIssuer, more?: object): Promise<any>
  /** Lets a credential in at its issuer, as the owner, and gives the page at the end. */
  connect(issuer: TokenIssuer, id: string, person?: Person): Promise<Reply>
  /** An agent that calls a tool of kind `http` so many times, one call after the other. */
  agent(
    server: TokenServer,
    name: string,
    options?: { calls?: number; method?: string; safety?: string },
  ): Promise<string>
  /** Creates a task of an agent's, and waits until it has ended or waits itself. */
  give(agent_id: string): Promise<any>
  /** A task once it has this status. */
  reaches(task: { id: string }, status: string): Promise<any>
}

let count = 0

/** Makes a project for it; `test` lets requests go to loopback. */
export async function makeTokenWorld(test: TestService): Promise<TokenWorld> {
  const { body: project } = await test.send('POST', '/api/v1/projects', { body: { name: `tokens-${++count}` } })
  const base = `/api/v1/projects/proj_${project.id}`
  const call: TokenWorld['call'] = (method, path, body) =>
    test.send(method, `${base}${path}`, body === undefined ? {} : { body })
  const made = async (path: string, body: object): Promise<any> => {
    const reply = await call('POST', path, body)
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }
  return {
    base,
    call,
    credential: (issuer, more = {}) =>
      made('/credentials', {
        name: `ISSUED_${++count}`,
        type: 'oauth2',
        issuer: issuer.issuer,
        ...issuerClients.own,
        grant: 'client_credentials',
        scopes: ['tools:read'],
        ...(!('mcp_url' in more) ? { allowed_hosts: ['127.0.0.1'] } : {}),
        ...more,
      }),
    async connect(issuer, id, person = ownerOf(test)) {
      const started = await call('POST', `/credentials/${id}/authorize`)
      assert.equal(started.status, 200, JSON.stringify(started.body))
      return comeBack(test, await issuer.approve(started.body.url), person)
    },
    async agent(server, name, { calls = 1, method = 'GET', safety } = {}) {
      const tool = `api_${++count}`
      await made('/tools', {
        name: tool,
        description: 'Calls the API.',
        kind: 'http',
        ...(safety && { safety }),
        http: { method, url: `${server.url}/things`, headers: { authorization: `Bearer \${credentials.${name}}` } },
      })
      const steps = Array.from({ length: calls }, () => ({ tool_calls: [{ name: tool, arguments: {} }] }))
      const config = {
        model: 'builtin/script',
        tools: [tool],
        max_steps: 2 * calls + 10,
        system_prompt: JSON.stringify([...steps, { text: '{{tool_result}}' }]),
      }
      const { id } = await made('/agents', { name: `caller-${++count}`, config })
      await eventually(async () => (await call('GET', `/agents/${id}`)).body.status === 'running')
      return id
    },
    async give(agent_id) {
      const reply = await call('POST', `/agents/${agent_id}/tasks?wait=30`, { input: 'Go.' })
      assert.ok(reply.status < 300, JSON.stringify(reply.body))
      return reply.body
    },
    reaches: (task, status) =>
      eventually(async () => {
        const { body } = await call('GET', `/tasks/${task.id}`)
        return body.status === status && body
      }),
  }
}

/** Opens the callback in a browser of a person's. */
export async function comeBack(test: TestService, callback: URL, person: Person): Promise<Reply> {
  const { cookie } = await makeSession(test, person)
  return test.send('GET', `${callback.pathname}${callback.search}`, { cookie, headers: { accept: 'text/html' } })
}

/** An issuer for the length of a test. */
export async function startIssuer(t: TestContext, options: IssuerOptions = {}): Promise<TokenIssuer> {
  const issuer = await TokenIssuer.start(options)
  t.after(() => issuer.stop())
  return issuer
}

/** A server on loopback that answers 401 to every token that is not good, and otherwise `fine`. */
export async function startTokenServer(t: TestContext, issuer: TokenIssuer): Promise<TokenServer> {
  const server: TokenServer = { url: '', calls: [], refuses: 0 }
  const { url } = await startLocalServer(t, async (request, response) => {
    const { authorization } = request.headers
    const key = request.headers['idempotency-key']
    const verdict = await issuer.judge(authorization)
    server.calls.push({ authorization, verdict, key: typeof key === 'string' ? key : undefined })
    const isRefused = server.refuses > 0 || verdict !== 'good'
    if (server.refuses > 0) server.refuses -= 1
    response.writeHead(isRefused ? 401 : 200).end(isRefused ? 'no' : `fine, ${authorization}`)
  })
  server.url = url
  return server
}
