import { answeredWaitReasons } from '#contract/tasks/task-lifecycle.ts'
import { agentHolds, waiting } from './endings.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Queue } from '../queue/queue.ts'
import { applyChanges, agentsWithDeferred, type PublishedEvents } from './task-changes.ts'
import type { LockedTask, TaskChange } from '../task.ts'

/** What a change by a person leaves to do after its commit. */
export interface JournalNotice {
  published: PublishedEvents[]
  /** Agents that tasks were put aside for: see `agentsWithDeferred`. */
  deferred: string[]
  /** Tasks that are to be canceled, and whose workers confirm it. */
  canceling: string[]
}

/**
 * Resumes a task that waits for a person; where its agent may not work, it waits for the agent. The worker of a running
 * task is notified instead and checks before its next step.
 */
export function resumed(task: LockedTask): Omit<TaskChange, 'task'> {
  if (task.status !== 'waiting') return { unseen: true }
  if (!answeredWaitReasons.some((reason) => reason === task.wait?.reason)) return {}
  const held = agentHolds(task)
  return held
    ? { ...waiting(task, held, undefined), job: { kind: 'end' } }
    : { job: { kind: 'first', start_after: undefined } }
}

/** Writes what a person, or the end of their time, changed. */
export async function applyAnswers(tx: Sql, queue: Queue, changes: readonly TaskChange[]): Promise<JournalNotice> {
  const canceling = changes.filter(({ cancel, status }) => cancel && status === undefined).map(({ task }) => task.id)
  return { published: await applyChanges(tx, queue, changes), deferred: agentsWithDeferred(changes), canceling }
}
