import type { Logger } from 'pino'
import type { TaskEventType } from '#contract/task-lifecycle.ts'
import type { Sql } from '../platform/database.ts'
import type { Bus } from './streams-bus.ts'

/** An event of a task as it is stored, paged and streamed (tasks 6). `sequence` is dense, from 1. */
export interface TaskEvent {
  sequence: number
  task_id: string
  type: TaskEventType
  created_at: string
  data: Record<string, unknown>
}

/** Somebody who watches one task. All calls are synchronous and must not throw. */
export interface Watcher {
  /** The last sequence it has; the hub tells it to look when the database has more. */
  seen(): number
  /** Events that were committed by this process, in order and without a gap among themselves. */
  events(events: readonly TaskEvent[]): void
  /** There may be more in the database than it has, or the task may be gone. */
  look(): void
  /** Text that a model is writing right now in this process; not kept anywhere. */
  delta?(message_id: string, text: string): void
  /** The process stops. */
  close?(): void
}

/** Where those who watch tasks and those who write their events meet, within the process and across processes. */
export interface Hub {
  /** Watches until the returned function is called. Who comes when the process stops is told so at once. */
  watch(task_id: string, watcher: Watcher): () => void
  /** Tells of events after their commit: watchers here get them directly, those elsewhere a signal to look. */
  publish(task_id: string, events: readonly TaskEvent[]): void
  delta(task_id: string, message_id: string, text: string): void
  /** Forgets a message that nobody will end, because its writer lost the task. */
  forget(task_id: string, message_id: string): void
  /** The message that is being written right now in this process, as far as it has come. */
  currentMessage(task_id: string): { message_id: string; text: string } | undefined
  close(): void
}

/** A signal may be lost with the process that owed it: nobody who watches is behind for longer than this. */
const look_ms = 2000
const looksMax = 1000

export function openHub({ sql, bus, log }: { sql: Sql; bus: Bus; log: Logger }): Hub {
  const watchers = new Map<string, Set<Watcher>>()
  const messages = new Map<string, { message_id: string; text: string }>()
  let looking = false
  let closed = false

  const each = (task_id: string, call: (watcher: Watcher) => void): void => {
    for (const watcher of watchers.get(task_id) ?? []) call(watcher)
  }
  const lookAll = (): void => {
    for (const all of watchers.values()) for (const watcher of all) watcher.look()
  }
  const leaves = [
    bus.on('task', (task_id, origin) => void (origin === 'elsewhere' && each(task_id, (watcher) => watcher.look()))),
    bus.onGap(lookAll),
  ]

  const lookAtDatabase = async (): Promise<void> => {
    if (watchers.size === 0 || looking) return
    looking = true
    try {
      const ids = [...watchers.keys()]
      for (let at = 0; at < ids.length; at += looksMax) await lookAt(ids.slice(at, at + looksMax))
    } catch (error) {
      log.warn({ err: error }, 'watched tasks could not be looked at')
    } finally {
      looking = false
    }
  }
  const lookAt = async (ids: string[]): Promise<void> => {
    const rows = await sql<{
      id: string
      last_sequence: number
    }>`select id, last_sequence from task where id = any(${ids})`
    const last = new Map(rows.map((row) => [row.id, row.last_sequence]))
    for (const id of ids) each(id, (watcher) => void ((last.get(id) ?? Infinity) > watcher.seen() && watcher.look()))
  }
  const timer = setInterval(() => void lookAtDatabase(), look_ms)
  timer.unref()

  return {
    watch(task_id, watcher) {
      const all = watchers.get(task_id) ?? new Set()
      watchers.set(task_id, all.add(watcher))
      if (closed) queueMicrotask(() => watcher.close?.())
      return () => {
        all.delete(watcher)
        if (all.size === 0 && watchers.get(task_id) === all) watchers.delete(task_id)
      }
    },
    publish(task_id, events) {
      if (events.some(({ type }) => endsMessage(type))) messages.delete(task_id)
      each(task_id, (watcher) => watcher.events(events))
      bus.tell('task', task_id)
    },
    delta(task_id, message_id, text) {
      const message = messages.get(task_id)
      if (message?.message_id === message_id) message.text += text
      else messages.set(task_id, { message_id, text })
      each(task_id, (watcher) => watcher.delta?.(message_id, text))
    },
    forget(task_id, message_id) {
      if (messages.get(task_id)?.message_id === message_id) messages.delete(task_id)
    },
    currentMessage: (task_id) => messages.get(task_id),
    close() {
      closed = true
      clearInterval(timer)
      for (const leave of leaves) leave()
      for (const all of [...watchers.values()]) for (const watcher of [...all]) watcher.close?.()
    },
  }
}

/** Whether the text streamed so far is whole, or void, with this event. */
function endsMessage(type: string): boolean {
  return type.startsWith('message.') || type === 'step.failed' || type === 'task.waiting' || type === 'task.retrying'
}
