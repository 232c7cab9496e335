import { setTimeout as delay } from 'node:timers/promises'
import type { Span } from '../fault.ts'
import { byLength, untilServed } from '../checker/recovery.ts'
import type { Environment } from '../environment.ts'

const held_ms = 4000
const patience_ms = 20_000

/** What came of a lock that was held on the agents while many asked for one. */
export interface Held {
  spans: Span[]
  statuses: (number | undefined)[]
  /** Answers that are neither served nor 503 with Retry-After. */
  wrong: string[]
  /** What `/readyz` answered meanwhile. */
  ready: number[]
  /** The longest time from the end of the lock until a process serves. */
  served: Span | undefined
  /** How long after the lock the last request was answered. */
  late_ms: number
}

/** Holds a lock on the agents for some seconds, while `count` requests for an agent are sent to one process. */
export async function holdAgents(environment: Environment, count: number, say: (text: string) => void): Promise<Held> {
  const { callers, project, registers } = environment.tenants[0]!
  const headers = { 'x-api-key': callers[0]!.api_key }
  const url = environment.cluster.url()!
  const spans: Span[] = []
  const statuses: (number | undefined)[] = []
  const ready: number[] = []
  const ask = async (
    path: string,
    seen: (status: number | undefined, headers: Headers | undefined) => void,
  ): Promise<void> => {
    const reply = await fetch(url + path, { headers, signal: AbortSignal.timeout(patience_ms) }).catch(() => undefined)
    await reply?.arrayBuffer().catch(() => {})
    seen(reply?.status, reply?.headers)
  }
  const wrong: string[] = []
  let asked: Promise<void>[] = []
  await environment.sql
    .begin(async (tx) => {
      await tx`lock table agent in access exclusive mode`
      asked = Array.from({ length: count }, async () => {
        const from = performance.now()
        await ask(`${project}/agents/${registers[0]}`, (status, answered) => {
          spans.push({ from, to: performance.now() })
          statuses.push(status)
          if (status === 503 && !answered?.has('retry-after')) wrong.push('503 without Retry-After')
          if (status === undefined || (status >= 500 && status !== 503)) wrong.push(`an answer is ${status}`)
        })
      })
      const end = performance.now() + held_ms
      while (performance.now() < end) {
        await ask('/readyz', (status) => ready.push(status ?? 0))
        await delay(200)
      }
    })
    .catch((error: unknown) => say(`the lock ended early: ${String(error)}`))
  const healed = performance.now()
  const served = (await untilServed(environment)).toSorted(byLength)[0]
  await Promise.all(asked)
  return { spans, statuses, wrong, ready, served, late_ms: Math.round(performance.now() - healed) }
}
