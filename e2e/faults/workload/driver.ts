import { setTimeout as delay } from 'node:timers/promises'
import type { Rng } from '../../../server/test/rng.ts'
import type { Reply } from '../../../server/test/harness.ts'
import { History, type Operation } from '../../../server/test/history/history.ts'
import { makeRequest, type Caller, type Record, type Request } from './client.ts'

/** An organization that callers work in, and the words that no other may see. */
export interface Tenant {
  name: string
  /** A word that is in everything that the organization has. */
  canary: string
  callers: readonly Caller[]
  /** `/api/v1/projects/proj_1` */
  project: string
  /** Agents whose descriptions are registers that are read and written by many. */
  registers: readonly string[]
  /** Agents that are started and stopped. */
  actors: readonly string[]
}

export interface DriverOptions {
  rng: Rng
  /** Addresses of the services that are there. */
  urls: () => readonly string[]
  tenants: readonly Tenant[]
  /** Requests a second, on average; they come by a schedule, however long others take. */
  rate: number
}

/** Callers who use the control plane as many do, while it is being hurt. */
export interface Driver extends Record {
  /** Claims of names, by who claimed them. */
  claims: { key: string; by: string; outcome: Operation['outcome'] }[]
  /** Ends the schedule, and waits until it is known what became of every write. */
  stop(): Promise<void>
  /** Makes a request as one of the callers does, until it is answered. */
  ask(caller: Caller, method: string, path: string): Promise<Reply>
}

/** More than this at a time are not begun: the machine that asks is the one that answers. */
const openMax = 500
const retry_ms = 100
/** Operations of one register at most: its history is searched. */
const registerMax = 200

/**
 * The standard mix of bench/mix.ts without its share of OAuth, which goes to lists: 30 % get, 22 % list, 15 % logs and metrics,
 * 10 % update, 8 % actions, 5 % create, 3 % delete, 4 % keys, 3 % projects.
 */
const mix = {
  get: 30,
  list: 22,
  logs: 8,
  metrics: 7,
  update: 10,
  action: 8,
  create: 5,
  remove: 3,
  keys: 4,
  project: 2,
  claim: 1,
} as const
type Op = keyof typeof mix
const deck = Object.entries(mix).flatMap(([op, share]) => Array.from({ length: share }, () => op as Op))

export function startDriver({ rng, urls, tenants, rate }: DriverOptions): Driver {
  const record: Record = { history: new History(), samples: [], wrong: [] }
  const claims: Driver['claims'] = []
  const canaries = Object.fromEntries(tenants.map(({ name, canary }) => [name, canary]))
  const made = new Map<Tenant, { id: string; name: string }[]>(tenants.map((tenant) => [tenant, []]))
  const uses = new Map<string, number>()
  const open = new Set<Promise<void>>()
  const stopping = new AbortController()
  let count = 0

  const send = (request: Omit<Request, 'url'>) => {
    const there = urls()
    return makeRequest(record, canaries, { ...request, url: there.length > 0 ? rng.pick(there) : undefined })
  }
  /** Until it is known what became of it: the same request, with the same key. */
  const settle = async (request: Omit<Request, 'url'>): Promise<Reply> => {
    for (let scheduled = request.scheduled; ; scheduled = performance.now()) {
      const { outcome, reply } = await send({ ...request, scheduled })
      if (outcome !== 'unknown' && reply) return reply
      await delay(retry_ms)
    }
  }

  const perform = async (op: Op, scheduled: number): Promise<void> => {
    const tenant = rng.pick(tenants)
    const { project, canary } = tenant
    const caller = rng.pick(tenant.callers)
    const number = ++count
    const common = { caller, scheduled, op, key: '' }
    const keyed = { headers: { 'idempotency-key': `${canary}-${number}` } }
    const agent = rng.pick(tenant.registers)
    const register = (): boolean => {
      const used = (uses.get(agent) ?? 0) + 1
      uses.set(agent, used)
      return used <= registerMax
    }
    switch (op) {
      case 'get': {
        const path = `${project}/agents/${agent}`
        const { operation, reply } = await send({
          ...common,
          op: register() ? 'read' : 'get',
          key: agent,
          method: 'GET',
          path,
        })
        operation.value = reply?.body?.description
        return
      }
      case 'update': {
        if (!register()) return void (await send({ ...common, method: 'GET', path: `${project}/agents/${agent}` }))
        const value = `${canary} ${number}`
        const body = { description: value }
        const path = `${project}/agents/${agent}`
        return void (await send({ ...common, op: 'write', key: agent, value, method: 'PUT', path, body }))
      }
      case 'list':
        return void (await send({ ...common, method: 'GET', path: `${project}/agents?limit=20` }))
      case 'logs':
      case 'metrics':
        return void (await send({ ...common, method: 'GET', path: `${project}/agents/${agent}/${op}` }))
      case 'action': {
        const actor = rng.pick(tenant.actors)
        const action = rng.pick(['start', 'stop', 'pause', 'restart'])
        return void (await send({
          ...common,
          key: actor,
          value: action,
          method: 'POST',
          path: `${project}/agents/${actor}/${action}`,
        }))
      }
      case 'create': {
        const name = `${canary}-${number}`
        const request = { ...common, ...keyed, key: name, method: 'POST', path: `${project}/agents`, body: { name } }
        const reply = await settle(request)
        if (reply.status === 201) made.get(tenant)!.push({ id: reply.body.id, name })
        return
      }
      case 'remove': {
        const victim = made.get(tenant)!.shift()
        if (!victim) return
        const path = `${project}/agents/${victim.id}`
        return void (await settle({ ...common, op: 'delete', key: victim.name, method: 'DELETE', path }))
      }
      case 'keys':
        return void (await send({ ...common, method: 'GET', path: '/api/v1/auth/api-keys' }))
      case 'project': {
        const name = `${canary}-${number}`
        return void (await settle({
          ...common,
          ...keyed,
          op: 'project',
          key: name,
          method: 'POST',
          path: '/api/v1/projects',
          body: { name },
        }))
      }
      case 'claim': {
        const name = `${canary}-c${number}`
        const claim = async (by: string): Promise<void> => {
          const headers = { 'idempotency-key': `${name} ${by}` }
          const reply = await settle({
            ...common,
            headers,
            op: 'project',
            key: name,
            method: 'POST',
            path: '/api/v1/projects',
            body: { name },
          })
          claims.push({ key: name, by, outcome: reply.status === 201 ? 'ok' : 'fail' })
        }
        return void (await Promise.all([claim('ada'), claim('bob')]))
      }
    }
  }

  const schedule = async (): Promise<void> => {
    const { signal } = stopping
    // Gaps between arrivals are exponential: many callers who know nothing of each other.
    for (let next = performance.now(); !signal.aborted; next += (-Math.log(1 - rng.next()) * 1000) / rate) {
      const wait = next - performance.now()
      if (wait > 0) await delay(wait, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
      while (open.size >= openMax) await Promise.race(open)
      const doing: Promise<void> = perform(rng.pick(deck), next)
        .catch((error: unknown) => void record.wrong.push(String(error)))
        .finally(() => open.delete(doing))
      open.add(doing)
    }
  }
  const running = schedule()

  return {
    ...record,
    claims,
    async stop() {
      stopping.abort()
      await running
      await Promise.all(open)
    },
    ask: (caller, method, path) => settle({ caller, op: 'ask', key: '', method, path, scheduled: performance.now() }),
  }
}
