import type pg from 'pg'

/** What the thread is started with; nothing in it belongs to the main thread alone. */
export interface HeartbeatThreadData {
  settings: Omit<pg.ClientConfig, 'types'>
  worker_id: string
  beat_ms: number
  hung_ms: number
  /** One number that the main thread raises as long as it answers. */
  answers: SharedArrayBuffer
}

/** What the thread tells the main one, for its log. */
export type HeartbeatMessage = { kind: 'beating' } | { kind: 'lost'; reason: string } | { kind: 'hung' }
