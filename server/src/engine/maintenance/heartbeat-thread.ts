import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import pg from 'pg'
import type { HeartbeatThreadData, HeartbeatMessage } from './heartbeat-messages.ts'

/**
 * Heartbeat thread: renews the worker's lease over a separate connection, so that a busy main thread does not look like
 * a crash. It pauses when the main thread has not answered for `hung_ms`, so that other workers take over the tasks of
 * a hung process. It resumes when the main thread answers again.
 */
const { settings, worker_id, beat_ms, hung_ms, answers } = workerData as HeartbeatThreadData

const reconnect_ms = 500
/** Shorter than a lease, so that a hanging connection is replaced before the worker counts as dead. */
const query_ms = 2000

const counter = new Int32Array(answers)
let answered = Atomics.load(counter, 0)
let answered_at = performance.now()

/** Whether the main thread answered within `hung_ms`. It raises the counter once per heartbeat. */
function isMainAlive(): boolean {
  const now = Atomics.load(counter, 0)
  if (now !== answered) {
    answered = now
    answered_at = performance.now()
  }
  return performance.now() - answered_at < hung_ms
}

function post(message: HeartbeatMessage): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a port of threads, not a window
  parentPort?.postMessage(message)
}

/** Sends heartbeats until the connection or the main thread is lost. */
async function beat(client: pg.Client): Promise<void> {
  for (let isFirst = true; isMainAlive(); isFirst = false) {
    const next = performance.now() + beat_ms
    // If another process deleted the row, this updates nothing. The main thread inserts the row again.
    await client.query({
      name: 'beat',
      text: 'update worker set seen_at = clock_timestamp() where id = $1',
      values: [worker_id],
    })
    if (isFirst) post({ kind: 'beating' })
    await delay(Math.max(0, next - performance.now()))
  }
}

for (;;) {
  if (!isMainAlive()) {
    await delay(beat_ms)
    continue
  }
  const client = new pg.Client({ ...settings, connectionTimeoutMillis: query_ms, query_timeout: query_ms })
  // The next query fails and reports the error.
  client.on('error', () => {})
  try {
    await client.connect()
    await beat(client)
    post({ kind: 'hung' })
  } catch (error) {
    post({ kind: 'lost', reason: error instanceof Error ? error.message : String(error) })
  }
  // On a silent network, `end` would wait forever.
  await Promise.race([client.end().catch(() => {}), delay(reconnect_ms)])
  await delay(reconnect_ms)
}
