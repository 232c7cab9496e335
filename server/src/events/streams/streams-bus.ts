import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Database } from '../../platform/postgres/database.ts'
import { packNotes, packSignals, readPayload } from './streams-payload.ts'

/**
 * Kinds of signals between processes, with the meaning of the id:
 * - `jobs`: there are jobs in the queue (no id);
 * - `task`: a task has new events;
 * - `agent`: an agent's state or existence changed;
 * - `stop`: an agent was stopped, and maybe started again at once;
 * - `cancel`: a running task must be canceled;
 * - `cooldown`: a provider asked for a cooldown;
 * - `tool_call`: a call of a tool with this name can be claimed;
 * - `work`: a task in a queue with this name can be claimed;
 * - `declined`: a user left the question with this id open;
 * - `worker`: a person asked the worker with this id to drain, or to work again.
 */
export type SignalKind =
  | 'jobs'
  | 'task'
  | 'agent'
  | 'stop'
  | 'cancel'
  | 'cooldown'
  | 'tool_call'
  | 'work'
  | 'declined'
  | 'worker'

export type SignalListener = (id: string, origin: 'here' | 'elsewhere') => void

/** Called with a message of another process; its content is not trusted. */
export type NoteListener = (note: unknown, from: string) => void

/**
 * Signals between processes over LISTEN and NOTIFY. They have ids only and are hints: listeners must read the database,
 * because a process that dies within the batching time loses its signals.
 */
export interface Bus {
  /** The name to which others send notes. */
  name: string
  /** Calls the listeners of this process at once, and those of others within about 20 ms, batched in one NOTIFY. */
  notify(kind: SignalKind, id?: string): void
  /** Calls `listener` for each signal of a kind until the returned function is called. */
  on(kind: SignalKind, listener: SignalListener): () => void
  /**
   * Sends JSON of at most 7 KB to one other process, by the name of its bus, in the order of the calls. It may be lost:
   * with the connection, or if more than 4 MB wait for an unavailable database.
   */
  send(to: string, note: object): void
  /** Calls `listener` with notes to this process until the returned function is called. */
  onNote(listener: NoteListener): () => void
  /** Calls `listener` when signals may have been missed, because the connection was lost. */
  onGap(listener: () => void): () => void
  /** Resolves when the first LISTEN is active. */
  ready: Promise<void>
  /** Sends what is waiting and closes. */
  close(): Promise<void>
}

const channel = 'cadre'
/** One NOTIFY per process each 20 ms costs nothing; one per transaction halves the throughput. */
const batch_ms = 20
/** Rare signals that a caller is waiting for. */
const urgent: ReadonlySet<SignalKind> = new Set(['tool_call', 'work', 'declined'])
const urgent_ms = 1
/**
 * Maximum number of signals stored while the database is unavailable; beyond that, listeners in other processes rely on
 * polling.
 */
const waitingMax = 50_000
const notesBytesMax = 4_194_304
const reconnect_ms = 500
const heartbeat_ms = 10_000

export interface BusOptions {
  database: Database
  log: Logger
  /** The name to which others send notes: at most 50 characters, unique to this process. */
  name?: string
  /** Run first on every listening connection: a lock that must last as long as the process. */
  presence?: { text: string; values: unknown[] }
}

/** Opens the bus of this process on a dedicated connection. Reconnects until closed. */
export function openBus({ database, log, presence, name = randomBytes(8).toString('hex') }: BusOptions): Bus {
  const listeners = new Map<SignalKind, Set<SignalListener>>()
  const gapListeners = new Set<() => void>()
  const noteListeners = new Set<NoteListener>()
  /** Notes as JSON, by receiver. */
  const notes = new Map<string, string[]>()
  let notesBytes = 0
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
    const signals = Object.fromEntries([...waiting].map(([kind, ids]) => [kind, [...ids]]))
    const sent = [
      ...packSignals(name, signals).map((text) => ({ to: channel, text })),
      ...[...notes].flatMap(([to, all]) => packNotes(name, all).map((text) => ({ to: channelOf(to), text }))),
    ]
    waiting.clear()
    notes.clear()
    notesBytes = 0
    try {
      await database.sql`
        select pg_notify(channel, payload)
        from unnest(${sent.map(({ to }) => to)}::text[], ${sent.map(({ text }) => text)}::text[]) as n(channel, payload)`
    } catch (error) {
      log.warn({ err: error }, 'signals to other processes could not be sent; retrying')
      // Notes are not stored: the receiver detects and reports a lost one.
      if (!closing.signal.aborted)
        for (const [kind, ids] of Object.entries(signals)) for (const id of ids) keep(kind as SignalKind, id)
      schedule(reconnect_ms)
    }
  }
  let isUrgent = false
  const schedule = (after_ms: number): void => {
    if (waiting.size === 0 && notes.size === 0) return
    if (timer && (isUrgent || after_ms !== urgent_ms)) return
    clearTimeout(timer)
    isUrgent = after_ms === urgent_ms
    timer = setTimeout(() => void (sending = sending.then(flush)), after_ms)
  }
  const keep = (kind: SignalKind, id: string): void => {
    const ids = waiting.get(kind) ?? new Set()
    if (ids.size < waitingMax) waiting.set(kind, ids.add(id))
  }

  const receive = (text: string | undefined): void => {
    const payload = readPayload(text)
    if (!payload || payload.origin === name) return
    for (const [kind, ids] of Object.entries(payload.signals ?? {}))
      for (const id of ids ?? []) call(kind as SignalKind, id, 'elsewhere')
    for (const note of payload.notes ?? []) for (const listener of noteListeners) listener(note, payload.origin)
  }
  const listening = keepListening({
    settings: database.settings,
    presence,
    channels: [channel, channelOf(name)],
    signal: closing.signal,
    log,
    receive,
    connected: (again) => {
      first.resolve()
      if (again) for (const listener of gapListeners) listener()
    },
  })

  return {
    name,
    ready: first.promise,
    notify(kind, id = '') {
      call(kind, id, 'here')
      if (closing.signal.aborted) return
      keep(kind, id)
      schedule(urgent.has(kind) ? urgent_ms : batch_ms)
    },
    on(kind, listener) {
      const all = listeners.get(kind) ?? new Set()
      listeners.set(kind, all.add(listener))
      return () => void all.delete(listener)
    },
    send(to, note) {
      if (closing.signal.aborted || notesBytes > notesBytesMax) return
      const text = JSON.stringify(note)
      notesBytes += text.length
      const all = notes.get(to)
      if (all) all.push(text)
      else notes.set(to, [text])
      schedule(batch_ms)
    },
    onNote(listener) {
      noteListeners.add(listener)
      return () => void noteListeners.delete(listener)
    },
    onGap(listener) {
      gapListeners.add(listener)
      return () => void gapListeners.delete(listener)
    },
    async close() {
      clearTimeout(timer)
      await sending
      closing.abort()
      if (waiting.size > 0 || notes.size > 0) await flush()
      clearTimeout(timer)
      await listening
    },
  }
}

/** The channel for notes to one process. */
function channelOf(name: string): string {
  return `${channel}_${name}`
}

interface Listening {
  settings: pg.ClientConfig
  presence: { text: string; values: unknown[] } | undefined
  channels: readonly string[]
  signal: AbortSignal
  log: Logger
  receive: (payload: string | undefined) => void
  connected: (again: boolean) => void
}

/** Holds a listening connection, and replaces it whenever it is lost, until the signal aborts. */
async function keepListening(options: Listening): Promise<void> {
  const { settings, presence, channels, signal, log, receive, connected } = options
  for (let again = false; !signal.aborted;) {
    const client = new pg.Client(settings)
    const lost = Promise.withResolvers<void>()
    client.on('error', (error) => {
      log.warn({ err: error }, 'the listening connection was lost; reconnecting')
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
      for (const name of channels) await client.query(`listen ${client.escapeIdentifier(name)}`)
      connected(again)
      again = true
      // A silent network is noticed only by a query.
      heartbeat = setInterval(() => void client.query('select 1').catch(() => lost.resolve()), heartbeat_ms)
      await lost.promise
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'could not listen for signals of other processes; retrying')
    }
    clearInterval(heartbeat)
    signal.removeEventListener('abort', stop)
    // On a silent network, `end` would wait forever.
    await Promise.race([client.end().catch(() => {}), delay(reconnect_ms, undefined, { ref: false })])
    await delay(reconnect_ms, undefined, { signal }).catch(() => {})
  }
}
