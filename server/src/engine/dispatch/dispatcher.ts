import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Gate } from '../queue/concurrency-limits.ts'
import { dispatchAgent } from './deferred-tasks.ts'
import { passGate } from './dispatch-limit.ts'
import type { Queue } from '../queue/queue.ts'

/** Gates that one process dispatches at the same time: the others keep their connections. */
const lanes = 4
/** How long a gate is tried again whose tasks have another gate that somebody else holds. */
const contended_ms = { first: 2, most: 100, tries: 50 }

export interface GateKeeper {
  /** Sends what has room at these gates, in the background; call it after the commit that freed them. */
  free(gates: readonly Gate[]): void
  /** Finishes what it began and begins nothing more; the upkeep of another process finds the rest. */
  stop(): Promise<void>
}

/** Sends the next tasks through gates that were freed, each gate once at a time. */
export function openGateKeeper(options: { sql: Sql; queue: Queue; log: Logger; wake: () => void }): GateKeeper {
  const { log } = options
  /** In the order in which they were freed; one that is freed anew while it is dispatched comes again. */
  const waiting = new Set<Gate>()
  const current = new Map<Gate, Promise<void>>()
  let stopped = false

  const fill = (): void => {
    for (const gate of waiting) {
      if (stopped || current.size >= lanes) return
      if (current.has(gate)) continue
      waiting.delete(gate)
      const passing = dispatch(gate, { ...options, isStopped: () => stopped })
        .catch((error: unknown) => log.warn({ err: error, gate }, 'tasks remain at a gate for now'))
        .finally(() => {
          current.delete(gate)
          fill()
        })
      current.set(gate, passing)
    }
  }
  return {
    free(gates) {
      for (const gate of gates) waiting.add(gate)
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

async function dispatch(gate: Gate, { sql, queue, wake, isStopped }: Dispatch): Promise<void> {
  if (gate.startsWith('agent:')) await dispatchAgent({ sql, queue, wake, isStopped }, gate.slice('agent:'.length))
  let wait_ms = contended_ms.first
  for (let tries = 0; tries < contended_ms.tries && !isStopped();) {
    const { sent, more } = await passGate(sql, queue, gate)
    if (sent > 0) wake()
    if (!more) return
    if (sent > 0) continue
    tries += 1
    await delay(wait_ms)
    wait_ms = Math.min(wait_ms * 2, contended_ms.most)
  }
}
