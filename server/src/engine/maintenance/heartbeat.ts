import { Worker } from 'node:worker_threads'
import type pg from 'pg'
import type { Logger } from 'pino'
import { heartbeat_ms } from './leases.ts'
import type { HeartbeatThreadData, HeartbeatMessage } from './heartbeat-messages.ts'

/** After this long without an answer of the main thread, the heartbeat pauses and the worker soon counts as dead. */
export const hung_ms = 60_000
/** Delay before a heartbeat thread that ended is restarted: shorter than the time until a worker counts as dead. */
const restart_ms = 500
/** Enough for one connection and one timer. */
const threadHeap_mb = 32

export interface HeartbeatOptions {
  settings: pg.ClientConfig
  worker_id: string
  log: Logger
  hung_ms?: number
}

export interface Heartbeat {
  stop(): Promise<void>
}

/**
 * Renews the worker's lease every second from a separate thread: a busy event loop does not look like a crash. The
 * thread ends with the process, reconnects after a loss of the database, and is restarted if it ends.
 */
export function startHeartbeat({ settings, worker_id, log, hung_ms: hung = hung_ms }: HeartbeatOptions): Heartbeat {
  const { types: _types, ...rest } = settings
  const answers = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const data: HeartbeatThreadData = {
    settings: { ...rest, application_name: 'cadre heartbeat' },
    worker_id,
    beat_ms: heartbeat_ms,
    hung_ms: hung,
    answers,
  }
  const counter = new Int32Array(answers)
  const answering = setInterval(() => void Atomics.add(counter, 0, 1), heartbeat_ms)
  answering.unref()
  let stopped = false
  let thread: Worker | undefined
  let restarting: NodeJS.Timeout | undefined

  const start = (): void => {
    thread = new Worker(new URL('./heartbeat-thread.ts', import.meta.url), {
      name: 'heartbeat',
      workerData: data,
      // Options of the main thread (a test runner, an inspector) may not suit a thread.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: threadHeap_mb },
    })
    thread.unref()
    thread.on('message', (message: HeartbeatMessage) => {
      if (message.kind === 'lost')
        log.warn({ reason: message.reason }, 'the heartbeat lost its connection; reconnecting')
      else if (message.kind === 'hung') log.error('the main thread did not answer; the heartbeat is paused')
    })
    thread.on('error', (error) => log.error({ err: error }, 'the heartbeat thread failed; restarting it'))
    thread.on('exit', () => {
      if (stopped) return
      restarting = setTimeout(start, restart_ms)
      restarting.unref()
    })
  }
  start()
  return {
    async stop() {
      stopped = true
      clearInterval(answering)
      clearTimeout(restarting)
      await thread?.terminate()
    },
  }
}
