import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { taskSubscriptions, eventNames } from '#contract/events/events.ts'
import type { Sql } from '../../server/src/platform/postgres/database.ts'
import type { Rng } from '../../server/test/rng.ts'
import { sender, type Send } from '../../server/test/harness.ts'
import { checkDeliveries, repetitions, type ActiveHook } from '../../server/test/history/check-deliveries.ts'
import { checkOutbox } from '../../server/test/history/check-outbox.ts'
import { leftOver, metByKills, passTime, readEvents, readThings } from './history.ts'
import { startWorkload, type Workload } from './workload.ts'
import type { Receivers } from './receivers.ts'
import { registerWebhooks } from './webhooks.ts'

/** An organization in which things happen, and its webhooks. */
interface Organization {
  id: string
  workload: Workload
  hooks: ActiveHook[]
}

/** Two organizations that get events, while the processes that deliver are killed. */
export interface Environment {
  /** Callers of both begin nothing more; ends when they are done. */
  stop(): Promise<void>
  /** Resolves when nothing is left to deliver; while it waits, the time of the next attempts is moved up. */
  quiet(): Promise<void>
  /** What is wrong, and in words what was met. */
  check(killed: readonly number[]): Promise<{ wrong: string[]; met: Met }>
}

/** How much a run has to prove something by. */
interface Met {
  events: number
  requests: number
  /** Requests that receivers did not take. */
  refused: number
  /** Requests that they had taken already: the process died before that was written. */
  repeated: number
  /** Events that were committed before a kill and matched after it. */
  unmatched: number
  /** Deliveries that were begun before a kill and first tried after it. */
  unsent: number
}

/** Time in which everything must be delivered after the last kill. */
const quiet_ms = 60_000
const pollInterval_ms = 200

/** What webhooks subscribe to, by the end of their path. */
const subscribed: Record<string, readonly string[]> = {
  everything: [...eventNames, ...taskSubscriptions.filter((name) => name.endsWith('.*'))],
  projects: ['project.created', 'project.updated', 'project.deleted'],
  agents: ['agent.launched', 'agent.stopped'],
  tasks: ['task.*'],
  ends: ['agent.completed', 'agent.failed', 'task.completed'],
}

/** Begins with services that are there; `api_key` is the owner's. `url` gives one of them, or none in a moment without. */
export async function startEnvironment(options: {
  url: () => string | undefined
  sql: Sql
  receivers: Receivers
  rng: Rng
  api_key: string
  /** In each organization. */
  callers: number
}): Promise<Environment> {
  const { url, sql, receivers, rng, api_key, callers } = options
  const keys = [api_key, await signUp(sender(url()!, ''))]
  const registered = await Promise.all(
    keys.map(async (key, i) => {
      const send = sender(url()!, key)
      const { body } = await send('GET', '/api/v1/auth/user')
      const id: string = body.organizations[0].id
      const marker = `org${i}`
      const hooks = Object.entries(subscribed).map(async ([name, events]): Promise<ActiveHook> => {
        const path = `/sometimes/${rng.seed}/${marker}/${name}` as const
        await registerWebhooks({ send, receivers }, [path], events)
        return { path, events, org_id: id }
      })
      return { id, key, marker, hooks: await Promise.all(hooks) }
    }),
  )
  // Events before there were webhooks were sent to none.
  assert.deepEqual(await readEvents(sql), [])
  const organizations = registered.map(({ id, key, marker, hooks }): Organization => {
    const workload = startWorkload({ url, rng: rng.fork(), api_key: key, marker, callers })
    return { id, workload, hooks }
  })
  return {
    stop: async () => void (await Promise.all(organizations.map(({ workload }) => workload.stop()))),
    async quiet() {
      const end = performance.now() + quiet_ms
      while ((await leftOver(sql)).some((text) => !text.includes('failed'))) {
        if (performance.now() > end) throw new Error((await leftOver(sql)).join())
        await passTime(sql)
        await delay(pollInterval_ms)
      }
    },
    async check(killed) {
      const events = await readEvents(sql)
      const hooks = organizations.flatMap((organization) => organization.hooks)
      const check = (): string[] => checkDeliveries({ events, hooks, seen: receivers.receipts, killed })
      // What the receivers' process has written is on its way here.
      await receivers.until(() => check().every((text) => !text.includes('was not told')), 5000).catch(() => {})
      const wrong = [...check(), ...(await leftOver(sql))]
      for (const { id, workload } of organizations) {
        const own = events.filter(({ org_id }) => org_id === id)
        wrong.push(
          ...checkOutbox({ ...(await readThings(sql, id)), events: own, operations: workload.history.operations }),
        )
      }
      const { receipts } = receivers
      const met = {
        events: events.length,
        requests: receipts.length,
        refused: receipts.filter(({ status }) => status !== 200).length,
        repeated: repetitions(receipts).length,
        ...(await metByKills(sql, killed)),
      }
      return { wrong, met }
    },
  }
}

/** Creates an account with a new organization; returns a key of it. */
async function signUp(send: Send): Promise<string> {
  const account = { email: 'grace@example.com', name: 'Grace', password: 'seven grey herons' }
  const { headers } = await send('POST', '/api/v1/auth/signup', { key: null, body: account })
  const cookie = headers.getSetCookie()[0]!.split(';')[0]!
  const body = { name: 'grace', scopes: ['read', 'write'] }
  const made = await send('POST', '/api/v1/auth/api-keys', { cookie, body })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  return made.body.key
}
