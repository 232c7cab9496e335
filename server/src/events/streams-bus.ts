import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Database } from '../platform/database.ts'

/**
 * What processes tell each other: `jobs` there is work in the queue (no id), `task` a task has new events, `agent` an
 * agent's state or existence changed, `cancel` a running task is to be canceled.
 */
export type SignalKind = 'jobs' | 'task' | 'agent' | 'cancel'

export type SignalListener = (id: string, origin: 'here' | 'elsewhere') => void

/**
 * Signals between processes over LISTEN and NOTIFY. They carry ids only and are hints: whoever listens must be able to
 * find the truth in the database, because a process that dies within the batching time takes its signals with it.
 */
export interface Bus {
  /** Calls the listeners of this process at once and those of others within some 20 ms, in one NOTIFY for all. */
  tell(kind: SignalKind, id?: string): void
  /** Calls `listener` for each signal of a kind until the returned function is called. */
  on(kind: SignalKind, listener: SignalListener): () => void
  /** Calls `listener` when signals may have been missed: the connection had been lost. */
  onGap(listener: () => void): () => void
  /** Resolves when the first LISTEN stands. */
  ready: Promise<void>
  /** Sends what is waiting and closes. */
  close(): Promise<void>
}

const channel = 'cadre'
/** One NOTIFY a process each 20 ms costs nothing; one a transaction halves the throughput (engine 6). */
const batch_ms = 20
/** PostgreSQL refuses 8000 bytes and more. */
const payloadBytesMax = 7600
/** Signals kept while the database is away; beyond that listeners elsewhere rely on their own look. */
const waitingMax = 50_000
const reconnect_ms = 500
const heartbeat_ms = 10_000

interface Payload {
  origin: string
  signals: Partial<Record<SignalKind, string[]>>
}

export interface BusOptions {
  database: Database
  log: Logger
  /** Run first on every connection that listens: what is to last as long as the process does. */
  presence?: { text: string; values: unknown[] }
}

/** Opens the bus of this process on one connection of its own; reconnects by itself until closed. */
export function openBus({ database, log, presence }: BusOptions): Bus {
  const origin = randomBytes(6).toString('base64url')
  const listeners = new Map<SignalKind, Set<SignalListener>>()
  const gapListeners = new Set<() => void>()
  const waiting = new Map<SignalKind, Set<string>>()
  const closing = new AbortController()
  const first = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let sending: Promise<void> = Promise.resolve()

  const call = (kind: SignalKind, id: string, from: 'here' | 'elsewhere'): void => {
    for (const listener of listeners.get(kind) ?? []) listener(id, from)
  }

  const flush = async (): Promise<void> => {
    timer = undefined
    const signals = Object.fromEntries([...waiting].map(([kind, ids]) => [kind, [...ids]])) as Payload['signals']
    waiting.clear()
    try {
      await database.sql`select pg_notify(${channel}, payload) from unnest(${payloads(origin, signals)}::text[]) payload`
    } catch (error) {
      log.warn({ err: error }, 'signals to other processes could not be sent; trying again')
      if (!closing.signal.aborted)
        for (const [kind, ids] of Object.entries(signals)) for (const id of ids) keep(kind as SignalKind, id)
      schedule(reconnect_ms)
    }
  }
  const schedule = (after_ms: number): void => {
    if (waiting.size > 0) timer ??= setTimeout(() => void (sending = flush()), after_ms)
  }
  const keep = (kind: SignalKind, id: string): void => {
    const ids = waiting.get(kind) ?? new Set()
    if (ids.size < waitingMax) waiting.set(kind, ids.add(id))
  }

  const receive = (text: string | undefined): void => {
    const payload = readPayload(text)
    if (!payload || payload.origin === origin) return
    const { signals } = payload
    for (const [kind, ids] of Object.entries(signals)) for (const id of ids) call(kind as SignalKind, id, 'elsewhere')
  }
  const listening = keepListening({
    settings: database.settings,
    presence,
    signal: closing.signal,
    log,
    receive,
    connected: (again) => {
      first.resolve()
      if (again) for (const listener of gapListeners) listener()
    },
  })

  return {
    ready: first.promise,
    tell(kind, id = '') {
      call(kind, id, 'here')
      if (closing.signal.aborted) return
      keep(kind, id)
      schedule(batch_ms)
    },
    on(kind, listener) {
      const all = listeners.get(kind) ?? new Set()
      listeners.set(kind, all.add(listener))
      return () => void all.delete(listener)
    },
    onGap(listener) {
      gapListeners.add(listener)
      return () => void gapListeners.delete(listener)
    },
    async close() {
      clearTimeout(timer)
      await sending
      closing.abort()
      if (waiting.size > 0) await flush()
      clearTimeout(timer)
      await listening
    },
  }
}

/** What a process of ours sent; undefined for anything else, which anybody on the same database may send. */
function readPayload(text: string | undefined): Payload | undefined {
  try {
    const payload = JSON.parse(text ?? '') as Partial<Payload> | null
    const lists = Object.values(payload?.signals ?? {})
    const isOurs = typeof payload?.origin === 'string' && lists.every((ids) => Array.isArray(ids))
    return isOurs ? { origin: payload.origin!, signals: payload.signals ?? {} } : undefined
  } catch {
    return undefined
  }
}

/** Cuts signals into payloads that PostgreSQL accepts. Ids are ASCII, so characters are bytes. */
function payloads(origin: string, signals: Payload['signals']): string[] {
  const texts: string[] = []
  let current: Payload = { origin, signals: {} }
  let size = 64
  for (const [kind, ids] of Object.entries(signals) as [SignalKind, string[]][]) {
    for (const id of ids) {
      if (size + id.length + 3 > payloadBytesMax) {
        texts.push(JSON.stringify(current))
        current = { origin, signals: {} }
        size = 64
      }
      const list = (current.signals[kind] ??= [])
      list.push(id)
      size += id.length + 3 + (list.length === 1 ? kind.length + 6 : 0)
    }
  }
  texts.push(JSON.stringify(current))
  return texts
}

interface Listening {
  settings: pg.ClientConfig
  presence: { text: string; values: unknown[] } | undefined
  signal: AbortSignal
  log: Logger
  receive: (payload: string | undefined) => void
  connected: (again: boolean) => void
}

/** Holds a connection that listens, and makes a new one whenever it is lost, until the signal aborts. */
async function keepListening({ settings, presence, signal, log, receive, connected }: Listening): Promise<void> {
  for (let again = false; !signal.aborted;) {
    const client = new pg.Client(settings)
    const lost = Promise.withResolvers<void>()
    client.on('error', (error) => {
      log.warn({ err: error }, 'the connection that listens was lost')
      lost.resolve()
    })
    client.on('end', () => lost.resolve())
    client.on('notification', ({ payload }) => receive(payload))
    const stop = (): void => lost.resolve()
    signal.addEventListener('abort', stop)
    let heartbeat: NodeJS.Timeout | undefined
    try {
      await client.connect()
      if (presence) await client.query(presence.text, presence.values)
      await client.query(`listen ${channel}`)
      connected(again)
      again = true
      // A silent network shows only when something is asked.
      heartbeat = setInterval(() => void client.query('select 1').catch(() => lost.resolve()), heartbeat_ms)
      await lost.promise
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'cannot listen for signals of other processes; trying again')
    }
    clearInterval(heartbeat)
    signal.removeEventListener('abort', stop)
    // On a silent network the goodbye would never be answered.
    await Promise.race([client.end().catch(() => {}), delay(reconnect_ms, undefined, { ref: false })])
    await delay(reconnect_ms, undefined, { signal }).catch(() => {})
  }
}
