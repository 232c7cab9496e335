import type { Logger } from 'pino'
import { isTerminalEvent, type TaskEventType } from '#contract/tasks/task-lifecycle.ts'
import { LiveMap } from '../../platform/memory/live-map.ts'
import { startPeriodic } from '../../platform/periodic.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Bus } from './streams-bus.ts'
import { Relay, type LiveMessage } from './streams-relay.ts'

/** An event of a task as it is stored, paged and streamed. `sequence` is dense, from 1. */
export interface TaskEvent {
  sequence: number
  task_id: string
  type: TaskEventType
  created_at: string
  data: Record<string, unknown>
}

/** A reader of one task's stream. All calls are synchronous and must not throw. */
export interface Watcher {
  /** The last sequence it has; the hub tells it to look when the database has more. */
  seen(): number
  /**
   * Events that were committed by this process, in order and without a gap among themselves; `row` is the task as they left it, where
   * it has finished and the watcher `awaits` it.
   */
  events(events: readonly TaskEvent[], row?: object): void
  /** There may be more in the database than it has, or the task may be gone. */
  look(): void
  /** Text that a model is writing right now, in order and without a hole; not kept anywhere. */
  delta?(message_id: string, text: string): void
  /** The message so far from its beginning; it replaces earlier parts. */
  message?(message_id: string, text: string): void
  /** What a model thinks before it answers; some of it may be missing. */
  reasoning?(message_id: string, text: string): void
  /** It needs the row of the finished task. */
  awaits?: boolean
  /** The process stops. */
  close?(): void
}

/** Where those who watch tasks and those who write their events meet, within the process and across processes. */
export interface Hub {
  /** Watches until the returned function is called. A reader that comes while the process stops gets an error at once. */
  watch(task_id: string, watcher: Watcher): () => void
  /** Publishes events after their commit: readers here get them directly, other processes get a signal to look. */
  publish(task_id: string, events: readonly TaskEvent[], row?: object): void
  /** Whether a reader here needs the row of the task when it finishes. */
  isAwaited(task_id: string): boolean
  delta(task_id: string, message_id: string, text: string): void
  reasoning(task_id: string, message_id: string, text: string): void
  /** A reader has come to the end of a message: what another process still sends of it is late. */
  ended(task_id: string, message_id: string): void
  /** Forgets a message that stays unfinished, because its writer lost the task. */
  forget(task_id: string, message_id: string): void
  /** Whether this process has lately published that a task ended or waits. False does not say that it did neither. */
  hasRested(task_id: string): boolean
  /** The message that is being written right now, as far as it has come to this process. */
  currentMessage(task_id: string): LiveMessage | undefined
  close(): void
}

/** A signal may be lost with the process that should send it: a reader is never behind for longer than this. */
const pollInterval_ms = 2000
const pollsMax = 1000
/** How soon a task whose text is newly watched, or that was taken over, is looked for on other processes. */
const find_ms = 50
/** How many tasks that ended or wait are remembered: see `hasRested`. */
const restedMax = 4096

/** The hub of a process, whose bus has the name of its worker. */
export function openHub({ sql, bus, log }: { sql: Sql; bus: Bus; log: Logger }): Hub {
  const watchers = new LiveMap<Set<Watcher>>()
  const messages = new LiveMap<LiveMessage>()
  const unknown = new Set<string>()
  const rested = new Set<string>()
  let finding: NodeJS.Timeout | undefined
  let closed = false

  const each = (task_id: string, call: (watcher: Watcher) => void): void => {
    for (const watcher of watchers.get(task_id) ?? []) call(watcher)
  }
  const lookAll = (): void => {
    for (const all of watchers.values()) for (const watcher of all) watcher.look()
  }
  const relay = new Relay({
    bus,
    messageOf: (task_id) => messages.get(task_id),
    received: (task_id, message_id, text, whole) =>
      each(task_id, (watcher) => (whole ? watcher.message : watcher.delta)?.call(watcher, message_id, text)),
    reasoned: (task_id, message_id, text) => each(task_id, (watcher) => watcher.reasoning?.(message_id, text)),
  })
  const leaves = [
    bus.on('task', (task_id, origin) => {
      if (origin === 'here' || !watchers.has(task_id)) return
      each(task_id, (watcher) => watcher.look())
      if ([...(watchers.get(task_id) ?? [])].some(({ delta }) => delta)) find(task_id)
    }),
    bus.onGap(lookAll),
    () => relay.close(),
  ]

  const lookAtDatabase = async (): Promise<void> => {
    const ids = watchers.keys()
    for (let at = 0; at < ids.length; at += pollsMax) await lookAt(ids.slice(at, at + pollsMax))
  }
  /** Sends readers what they have not seen, and tells the processes that run their tasks that there are readers. */
  const lookAt = async (ids: string[]): Promise<void> => {
    const rows = await sql<{
      id: string
      last_sequence: number
      worker_id: string | null
    }>`select id, last_sequence, worker_id from task where id = any(${ids})`
    const last = new Map(rows.map((row) => [row.id, row.last_sequence]))
    for (const id of ids) each(id, (watcher) => void ((last.get(id) ?? Infinity) > watcher.seen() && watcher.look()))
    const elsewhere: { task_id: string; worker_id: string }[] = []
    for (const { id, worker_id: runner } of rows) {
      if (runner === bus.name) relay.forget(id)
      else if (runner !== null && watchers.has(id)) elsewhere.push({ task_id: id, worker_id: runner })
    }
    relay.watch(elsewhere)
  }
  /** Looks soon for the process that runs a task. */
  const find = (task_id: string): void => {
    if (messages.has(task_id)) return
    unknown.add(task_id)
    finding ??= setTimeout(() => {
      finding = undefined
      const ids = [...unknown].slice(0, pollsMax)
      for (const id of ids) unknown.delete(id)
      const watched = ids.filter((id) => watchers.has(id))
      if (unknown.size > 0) find(ids[0]!)
      if (watched.length === 0) return
      lookAt(watched).catch((error: unknown) => log.warn({ err: error }, 'watched tasks could not be looked at'))
    }, find_ms)
    finding.unref()
  }
  const polling = startPeriodic(lookAtDatabase, {
    every_ms: pollInterval_ms,
    onError: (error) => log.warn({ err: error }, 'watched tasks could not be read; they will be read again'),
  })

  return {
    watch(task_id, watcher) {
      const all = watchers.get(task_id) ?? new Set()
      watchers.set(task_id, all.add(watcher))
      // One that only waits for the end gets signals of any process, and needs none of the text.
      if (watcher.delta) find(task_id)
      if (closed) queueMicrotask(() => watcher.close?.())
      return () => {
        all.delete(watcher)
        if (all.size > 0 || watchers.get(task_id) !== all) return
        watchers.delete(task_id)
        relay.forget(task_id)
      }
    },
    isAwaited: (task_id) => [...(watchers.get(task_id) ?? [])].some(({ awaits }) => awaits),
    publish(task_id, events, row) {
      const message = messages.get(task_id)
      if (message && events.some((event) => endsMessage(event, message.message_id))) {
        relay.ends(task_id)
        messages.delete(task_id)
      }
      if (events.some(isRest)) {
        rested.add(task_id)
        if (rested.size > restedMax) rested.delete(rested.values().next().value!)
      }
      each(task_id, (watcher) => watcher.events(events, row))
      bus.notify('task', task_id)
    },
    delta(task_id, message_id, text) {
      const message = messages.get(task_id)
      if (message?.message_id === message_id) message.text += text
      else messages.set(task_id, { message_id, text })
      each(task_id, (watcher) => watcher.delta?.(message_id, text))
      relay.grew(task_id)
    },
    reasoning(task_id, message_id, text) {
      each(task_id, (watcher) => watcher.reasoning?.(message_id, text))
      relay.reason(task_id, message_id, text)
    },
    ended: (task_id, message_id) => relay.ended(task_id, message_id),
    forget(task_id, message_id) {
      if (messages.get(task_id)?.message_id === message_id) messages.delete(task_id)
    },
    hasRested: (task_id) => rested.has(task_id),
    currentMessage: (task_id) => messages.get(task_id) ?? relay.messageOf(task_id),
    close() {
      closed = true
      void polling.stop()
      clearTimeout(finding)
      for (const leave of leaves) leave()
      for (const all of watchers.values()) for (const watcher of [...all]) watcher.close?.()
    },
  }
}

/** Whether a task has ended or waits with this event. */
export function isRest({ type }: TaskEvent): boolean {
  return isTerminalEvent(type) || type === 'task.waiting'
}

/** Whether a message's text streamed so far is whole, or void, with this event. */
function endsMessage({ type, data }: TaskEvent, message_id: string): boolean {
  if (type.startsWith('message.')) return data['message_id'] === message_id
  return type === 'step.failed' || type === 'task.waiting' || type === 'task.retrying'
}
