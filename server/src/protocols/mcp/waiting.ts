import { isFinished, personWaitReasons } from '#contract/tasks/task-lifecycle.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { listTaskEvents } from '../../events/streams/streams.ts'
import { findTask, rests, type TaskKey } from '../../resources/tasks/tasks.queries.ts'
import type { McpCall, Progress } from './mcp-call.ts'

export interface Waiting {
  seconds: number
  signal: AbortSignal
  progress?: Progress | undefined
  /** The last event that the caller knows. A wait of the task from before it does not end this wait. */
  after?: number
}

/**
 * Waits until a task has finished, waits for a person or a program, or the time is over, and returns the task in its
 * state then; undefined if it was deleted. Holds no database connection while it waits.
 */
export async function waitForTask(
  { context: { sql, engine } }: McpCall,
  key: TaskKey,
  { seconds, signal, progress, after = 0 }: Waiting,
): Promise<TaskRow | undefined> {
  let row = await findTask(sql, key)
  if (!row || seconds === 0) return row
  if (await isSettled(row)) {
    if (progress) await sendProgress(after, row, progress)
    return row
  }
  let wake = Promise.withResolvers<void>()
  const closing = new AbortController()
  const over = AbortSignal.any([signal, closing.signal, AbortSignal.timeout(Math.ceil(seconds * 1000))])
  const look = (): void => wake.resolve()
  let seen = after
  over.addEventListener('abort', look)
  const unwatch = engine.hub.watch(key.id, {
    seen: () => row?.last_sequence ?? 0,
    events: look,
    look,
    close: () => closing.abort(),
  })
  async function isSettled(task: TaskRow): Promise<boolean> {
    if (isFinished(task.status)) return true
    if (task.last_sequence <= after) return false
    const isAsking = (personWaitReasons as readonly string[]).includes(task.wait?.reason ?? '')
    return task.status === 'waiting' && isAsking && (await rests(sql, key.id))
  }
  try {
    while (!over.aborted) {
      wake = Promise.withResolvers<void>()
      row = await findTask(sql, key)
      const isOver = !row || (await isSettled(row))
      // Up to the row that was read, so that the client is notified of every step of a finished task exactly once.
      if (progress && row) seen = await sendProgress(seen, row, progress)
      if (isOver) return row
      await wake.promise
    }
    return (await findTask(sql, key)) ?? row
  } finally {
    unwatch()
    over.removeEventListener('abort', look)
  }

  async function sendProgress(after: number, { last_sequence }: TaskRow, to: Progress): Promise<number> {
    const events = await listTaskEvents(sql, key.id, { after, limit: 500 })
    for (const { sequence, type, data } of events) {
      if (type === 'step.started' && sequence <= last_sequence)
        to(sequence, `${String(data['type'])} ${typeof data['name'] === 'string' ? data['name'] : ''}`.trim())
    }
    return Math.min(last_sequence, events.at(-1)?.sequence ?? after)
  }
}
