import { answeredWaitReasons } from '#contract/tasks/task-lifecycle.ts'
import { agentHolds, waiting } from './endings.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Queue } from '../queue/queue.ts'
import { applyChanges, agentsWithDeferred, type PublishedEvents } from './task-changes.ts'
import type { LockedTask, TaskChange } from '../task.ts'

/** Work that remains after the commit of a change by a person. */
export interface JournalNotice {
  published: PublishedEvents[]
  /** Agents whose tasks were deferred: see `agentsWithDeferred`. */
  deferred: string[]
  /** Tasks whose cancellation their workers must confirm. */
  canceling: string[]
}

/**
 * The change of a task for which something was `done` that it waits for. A waiting task is resumed; if its agent may not
 * work, it waits for the agent. For a running task, its worker is notified and checks before the next step.
 */
export function resumed(task: LockedTask, done: Pick<TaskChange, 'steps' | 'events' | 'logs'>): TaskChange {
  const { events = [], ...next } = afterWait(task)
  return { task, ...next, ...done, events: [...(done.events ?? []), ...events] }
}

function afterWait(task: LockedTask): Omit<TaskChange, 'task' | 'steps' | 'logs'> {
  if (task.status !== 'waiting') return { unseen: true }
  if (!answeredWaitReasons.some((reason) => reason === task.wait?.reason)) return {}
  const held = agentHolds(task)
  return held
    ? { ...waiting(task, held, undefined), job: { kind: 'end' } }
    : { job: { kind: 'first', start_after: undefined } }
}

/** Writes changes that a person, a timeout or another process caused. */
export async function applyAnswers(tx: Sql, queue: Queue, changes: readonly TaskChange[]): Promise<JournalNotice> {
  const canceling = changes.filter(({ cancel, status }) => cancel && status === undefined).map(({ task }) => task.id)
  return { published: await applyChanges(tx, queue, changes), deferred: agentsWithDeferred(changes), canceling }
}
