import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import pg from 'pg'
import type { HeartbeatThreadData, HeartbeatMessage } from './heartbeat-messages.ts'

/**
 * Heartbeat thread: renews the worker's lease over its own connection, so that a busy main thread does not look like a
 * crash. It pauses when the main thread has not answered for `hung_ms`, so that other workers take over from a hung
 * process, and goes on when the main thread answers again.
 */
const { settings, worker_id, beat_ms, hung_ms, answers } = workerData as HeartbeatThreadData

const reconnect_ms = 500
/** Less than a lease, so that a connection that hangs is replaced before the worker counts as dead. */
const query_ms = 2000

const counter = new Int32Array(answers)
let answered = Atomics.load(counter, 0)
let answered_at = performance.now()

/** Whether the main thread has answered lately: it raises the counter as often as we beat. */
function isMainAlive(): boolean {
  const now = Atomics.load(counter, 0)
  if (now !== answered) {
    answered = now
    answered_at = performance.now()
  }
  return performance.now() - answered_at < hung_ms
}

function say(message: HeartbeatMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of threads, not a window
  parentPort?.postMessage(message)
}

/** Beats until the connection or the main thread is lost. */
async function beat(client: pg.Client): Promise<void> {
  for (let isFirst = true; isMainAlive(); isFirst = false) {
    const next = performance.now() + beat_ms
    // A row that others have removed is written anew by the main thread, which gives up what it had.
    await client.query({
      name: 'beat',
      text: 'update worker set seen_at = clock_timestamp() where id = $1',
      values: [worker_id],
    })
    if (isFirst) say({ kind: 'beating' })
    await delay(Math.max(0, next - performance.now()))
  }
}

for (;;) {
  if (!isMainAlive()) {
    await delay(beat_ms)
    continue
  }
  const client = new pg.Client({ ...settings, connectionTimeoutMillis: query_ms, query_timeout: query_ms })
  // The next statement reports it.
  client.on('error', () => {})
  try {
    await client.connect()
    await beat(client)
    say({ kind: 'hung' })
  } catch (error) {
    say({ kind: 'lost', reason: error instanceof Error ? error.message : String(error) })
  }
  // On a silent network the goodbye would never be answered.
  await Promise.race([client.end().catch(() => {}), delay(reconnect_ms)])
  await delay(reconnect_ms)
}
