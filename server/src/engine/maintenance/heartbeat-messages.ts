import type pg from 'pg'

/** Start data of the heartbeat thread. It is copied, except for `answers`. */
export interface HeartbeatThreadData {
  settings: Omit<pg.ClientConfig, 'types'>
  worker_id: string
  beat_ms: number
  hung_ms: number
  /** Shared memory with one counter, which the main thread raises while its event loop runs. */
  answers: SharedArrayBuffer
}

/** Messages of the heartbeat thread to the main thread, which logs them. */
export type HeartbeatMessage = { kind: 'beating' } | { kind: 'lost'; reason: string } | { kind: 'hung' }
