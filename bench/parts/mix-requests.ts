import assert from 'node:assert/strict'
import { Agent, request } from 'undici'
import type { Rng } from '../../server/test/rng.ts'
import type { TestService } from '../../server/test/harness.ts'
import { OAuthDriver, type TestClient } from '../../server/test/oauth.ts'

export interface MixAnswer {
  kind: string
  /** Whether it had a status that was asked for. */
  isGood: boolean
  /** The status, or what happened to the connection. */
  what: string
  /** From when it was due to the end of its answer. */
  took_ms: number
  /** Since the first of its run. */
  at_s: number
}

export interface Mix {
  kinds: string[]
  /** One request that was due at this moment of `performance.now()`; now where nothing is said. */
  send(due_ms?: number): Promise<MixAnswer>
  close(): Promise<void>
}

/** Connections of the callers, which are kept: the service takes 2,000. */
export const connectionsMax = 1500
/** An answer may take so long before it counts as lost. */
const timeout_ms = 60_000
/** Sign-ins whose tokens are made new in turn: of one of them only one request may be under way. */
const chains = 16
/** Agents that are paused and started again. */
const toggledCount = 64

interface Sent {
  status: number
  body: string
}

/** Sets a project up with so many agents, and gives the requests of the standard mix in its shares. */
export async function makeMix(url: string, credentials: unknown, rng: Rng, agents: number): Promise<Mix> {
  const { api_key, owner, oauth_client } = readCredentials(credentials)
  const dispatcher = new Agent({
    connections: connectionsMax,
    pipelining: 1,
    headersTimeout: timeout_ms,
    bodyTimeout: timeout_ms,
  })
  const ask = async (method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object): Promise<Sent> => {
    const answer = await request(`${url}/api/v1${path}`, {
      method,
      dispatcher,
      headers: { 'x-api-key': api_key, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: answer.statusCode, body: await answer.body.text() }
  }
  const make = async (path: string, body: object): Promise<{ id: string }> => {
    const { status, body: text } = await ask('POST', path, body)
    assert.equal(status, 201, text)
    return JSON.parse(text) as { id: string }
  }
  const project = `/projects/${(await make('/projects', { name: 'mix' })).id}`
  let named = 0
  const newAgent = () => make(`${project}/agents`, { name: `agent-${++named}`, config: { model: 'builtin/echo' } })
  const kept: string[] = []
  while (kept.length < agents) kept.push((await newAgent()).id)
  const toggled = kept.slice(0, toggledCount).map((id) => ({ id, isPaused: false }))
  const spare: string[] = []
  const driver = new OAuthDriver({ url, owner } as unknown as TestService)
  const tokens: string[] = []
  while (tokens.length < chains) {
    const { body } = await driver.exchange(oauth_client, await driver.code(oauth_client))
    tokens.push(body.refresh_token)
  }

  const create = async (): Promise<Sent> => {
    const body = { name: `agent-${++named}`, config: { model: 'builtin/echo' } }
    const answer = await ask('POST', `${project}/agents`, body)
    if (answer.status === 201) spare.push((JSON.parse(answer.body) as { id: string }).id)
    return answer
  }
  const one = () => `${project}/agents/${rng.pick(kept)}`
  const work: Record<string, { share: number; good: number[]; send: () => Promise<Sent> }> = {
    'Read an agent': { share: 30, good: [200], send: () => ask('GET', one()) },
    'List agents': { share: 20, good: [200], send: () => ask('GET', `${project}/agents?limit=20`) },
    'Logs of an agent': { share: 8, good: [200], send: () => ask('GET', `${one()}/logs?limit=20`) },
    'Metrics of an agent': { share: 7, good: [200], send: () => ask('GET', `${one()}/metrics`) },
    'Update an agent': {
      share: 10,
      good: [200],
      send: () => ask('PUT', one(), { description: `changed ${rng.between(1, 1e9)}` }),
    },
    'Pause or start an agent': {
      share: 8,
      good: [200],
      async send() {
        const agent = toggled.shift()
        // All are under way.
        if (!agent) return ask('GET', one())
        const answer = await ask('POST', `${project}/agents/${agent.id}/${agent.isPaused ? 'start' : 'pause'}`)
        if (answer.status === 200) agent.isPaused = !agent.isPaused
        toggled.push(agent)
        return answer
      },
    },
    'Create an agent': { share: 5, good: [201], send: create },
    'Delete an agent': {
      share: 3,
      good: [200, 201, 204],
      send() {
        const id = spare.shift()
        return id === undefined ? create() : ask('DELETE', `${project}/agents/${id}`)
      },
    },
    'List keys': { share: 4, good: [200], send: () => ask('GET', '/auth/api-keys') },
    'Read a project': { share: 3, good: [200], send: () => ask('GET', project) },
    'Refresh a token': {
      share: 2,
      good: [200],
      async send() {
        const token = tokens.shift()
        if (token === undefined) return ask('GET', one())
        const { status, body } = await driver.refresh(oauth_client, token)
        tokens.push(status === 200 ? body.refresh_token : token)
        return { status, body: JSON.stringify(body) }
      },
    },
  }
  const dealt = Object.entries(work).flatMap(([kind, { share }]) => Array.from({ length: share }, () => kind))
  return {
    kinds: Object.keys(work),
    async send(due_ms = performance.now()) {
      const kind = rng.pick(dealt)
      const { good, send } = work[kind]!
      const sent = await send().catch((error: unknown) => String(error))
      const isGood = typeof sent !== 'string' && good.includes(sent.status)
      const what = typeof sent === 'string' ? sent : `${sent.status}${isGood ? '' : ` ${sent.body.slice(0, 120)}`}`
      return { kind, isGood, what, took_ms: performance.now() - due_ms, at_s: 0 }
    },
    close: () => dispatcher.close(),
  }
}

/** What the first start keeps in `credentials.json`. */
function readCredentials(kept: unknown): {
  api_key: string
  owner: { email: string; password: string }
  oauth_client: TestClient
} {
  const value = (name: string): string => {
    const found = (kept as Record<string, unknown>)[name]
    assert.ok(typeof found === 'string', name)
    return found
  }
  return {
    api_key: value('api_key'),
    owner: { email: value('email'), password: value('password') },
    oauth_client: {
      client_id: value('oauth_client_id'),
      client_secret: value('oauth_client_secret'),
      redirect_uri: value('oauth_redirect_uri'),
    },
  }
}
