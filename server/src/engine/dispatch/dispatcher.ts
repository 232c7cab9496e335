import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { LimitKey } from '../queue/concurrency-limits.ts'
import { dispatchAgent } from './deferred-tasks.ts'
import { dispatchAtLimit } from './dispatch-limit.ts'
import type { Queue } from '../queue/queue.ts'
import { backoff } from '../../platform/backoff.ts'

/** Maximum number of limits that one process dispatches at the same time, so that connections remain for others. */
const concurrency = 4
/** Bounds of the retries while another transaction holds a further limit of the tasks. */
const contended_ms = { first: 2, max: 100, tries: 50 }

export interface Dispatcher {
  /** Sends the tasks that have room at these limits, in the background. Called after the commit that freed them. */
  free(limitKeys: readonly LimitKey[]): void
  /** Finishes the dispatches in flight and starts no more; the maintenance of another process finds the rest. */
  stop(): Promise<void>
}

/** Dispatcher: sends the next tasks of freed limits; each limit is dispatched by one transaction at a time. */
export function openDispatcher(options: { sql: Sql; queue: Queue; log: Logger; wake: () => void }): Dispatcher {
  const { log } = options
  /** In the order in which they were freed. A limit that is freed during its dispatch is added again. */
  const waiting = new Set<LimitKey>()
  const current = new Map<LimitKey, Promise<void>>()
  let stopped = false

  const fill = (): void => {
    for (const limitKey of waiting) {
      if (stopped || current.size >= concurrency) return
      if (current.has(limitKey)) continue
      waiting.delete(limitKey)
      const passing = dispatch(limitKey, { ...options, isStopped: () => stopped })
        .catch((error: unknown) =>
          log.warn({ err: error, limitKey }, 'dispatch of a concurrency limit failed; retrying'),
        )
        .finally(() => {
          current.delete(limitKey)
          fill()
        })
      current.set(limitKey, passing)
    }
  }
  return {
    free(limitKeys) {
      for (const limitKey of limitKeys) waiting.add(limitKey)
      fill()
    },
    async stop() {
      stopped = true
      await Promise.all(current.values())
    },
  }
}

interface Dispatch {
  sql: Sql
  queue: Queue
  wake: () => void
  isStopped: () => boolean
}

async function dispatch(limitKey: LimitKey, { sql, queue, wake, isStopped }: Dispatch): Promise<void> {
  if (limitKey.startsWith('agent:'))
    await dispatchAgent({ sql, queue, wake, isStopped }, limitKey.slice('agent:'.length))
  for (let tries = 0; tries < contended_ms.tries && !isStopped();) {
    const { sent, more } = await dispatchAtLimit(sql, queue, limitKey)
    if (sent > 0) wake()
    if (!more) return
    if (sent > 0) continue
    tries += 1
    await delay(backoff(tries, contended_ms))
  }
}
