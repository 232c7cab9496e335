import type { Logger } from 'pino'
import { isTerminalEvent, type TaskEventType } from '#contract/tasks/task-lifecycle.ts'
import { LiveMap } from '../../platform/memory/live-map.ts'
import { startPeriodic } from '../../platform/periodic.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Bus } from './streams-bus.ts'
import { Relay, type LiveMessage } from './streams-relay.ts'

/** An event of a task, as stored, paged and streamed. `sequence` is dense, from 1. */
export interface TaskEvent {
  sequence: number
  task_id: string
  type: TaskEventType
  created_at: string
  data: Record<string, unknown>
}

/** A reader of one task's stream. All calls are synchronous and must not throw. */
export interface Watcher {
  /** The last sequence that it has; the hub calls `look` if the database has more. */
  seen(): number
  /**
   * Events that this process committed, in order and without gaps among them. `row` is the finished task, if the
   * watcher `awaits` it.
   */
  events(events: readonly TaskEvent[], row?: object): void
  /** The database may have more events, or the task may have been deleted. */
  look(): void
  /** Text that a model is writing now, in order and without gaps; it is not stored. */
  delta?(message_id: string, text: string): void
  /** The whole message so far, which replaces earlier parts. */
  message?(message_id: string, text: string): void
  /** Reasoning before the answer; parts may be missing. */
  reasoning?(message_id: string, text: string): void
  /** Whether it needs the row of the finished task. */
  awaits?: boolean
  /** The process stops. */
  close?(): void
}

/** Connects readers of tasks with writers of events, within the process and across processes. */
export interface Hub {
  /** Watches until the returned function is called. While the process stops, the watcher is closed at once. */
  watch(task_id: string, watcher: Watcher): () => void
  /** Publishes events after their commit: watchers here get them directly, other processes get a signal to look. */
  publish(task_id: string, events: readonly TaskEvent[], row?: object): void
  /** Whether a watcher here needs the row of the finished task. */
  isAwaited(task_id: string): boolean
  delta(task_id: string, message_id: string, text: string): void
  reasoning(task_id: string, message_id: string, text: string): void
  /** A reader has received the end of a message: text of it that still arrives from another process is late. */
  ended(task_id: string, message_id: string): void
  /** Drops a message that stays unfinished, because its writer lost the task. */
  forget(task_id: string, message_id: string): void
  /** Whether this process recently published that the task ended or waits. False does not mean that it did neither. */
  hasRested(task_id: string): boolean
  /** The unfinished message, as far as its text has reached this process. */
  currentMessage(task_id: string): LiveMessage | undefined
  close(): void
}

/** Poll interval for events whose signal was lost with its process: the longest delay of a reader. */
const pollInterval_ms = 2000
const pollsMax = 1000
/** Delay before looking for the process that runs a task that is newly watched or was taken over. */
const find_ms = 50
/** Maximum number of tasks for `hasRested`. */
const restedMax = 4096

/** Opens the hub of a process. Its bus has the name of its worker. */
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
  /** Wakes readers with missing events, and tells the processes that run their tasks that there are readers. */
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
      lookAt(watched).catch((error: unknown) =>
        log.warn({ err: error }, 'watched tasks could not be read; they will be read again'),
      )
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
      // A watcher without `delta` only waits for the end: it gets signals of any process, and needs no text.
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

/** Whether the task has ended or waits with this event. */
export function isRest({ type }: TaskEvent): boolean {
  return isTerminalEvent(type) || type === 'task.waiting'
}

/** Whether the streamed text of a message is complete, or discarded, with this event. */
function endsMessage({ type, data }: TaskEvent, message_id: string): boolean {
  if (type.startsWith('message.')) return data['message_id'] === message_id
  return type === 'step.failed' || type === 'task.waiting' || type === 'task.retrying'
}
