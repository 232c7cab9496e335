import { cleanText } from '../../platform/clean-text.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { conversation } from '../conversation/conversation.ts'
import type { StoredMessage } from '../conversation/turns.ts'
import { isOver, take } from '../run/claim.ts'
import { agentsWithDeferred, applyChanges } from '../journal/task-changes.ts'
import { inputOf } from '../journal/call-states.ts'
import { listSteps } from '../journal/task-rows.ts'
import { leaseWork, listUnread, lockOffered } from '../journal/work.queries.ts'
import type { LockedTask, ReadMessage, Step, TaskChange, TaskWork } from '../task.ts'
import { prepareRun, runOf, type RemoteContext } from './lease.ts'

/** The parameters of a claim. */
export interface WorkClaim {
  project_id: number
  /** Names of queues. */
  names: readonly string[]
  lease_seconds: number
  worker: string | null
  user_id: string
  credential_id: string
}

/** A claimed task, as its worker receives it. */
export interface ClaimedTask {
  task_id: string
  queue: string
  attempt: number
  until: string
  /** The conversation so far: the system prompt, the thread's history, the input, and messages since. */
  messages: StoredMessage[]
}

/**
 * Reads more about a claimed task in the transaction of its claim; sent together with its commit. `hasSteps` is false
 * if the task has no steps yet.
 */
export type ReadClaimed = (tx: Sql, task_id: string, hasSteps: boolean) => Promise<unknown>

/**
 * Claims the task with the highest priority in these queues; undefined if there is none. Two claims never get the same
 * task.
 */
export async function claimWork(
  context: RemoteContext,
  request: WorkClaim & { lease_hash: Buffer; read?: ReadClaimed | undefined },
): Promise<ClaimedTask | undefined> {
  const { sql, queue } = context
  const { project_id, names: queues, lease_seconds, lease_hash, worker, user_id, credential_id, read } = request
  const claimed = await sql.begin(async (tx) => {
    const offered = await lockOffered(tx, { project_id, queues })
    if (!offered) return undefined
    const { task } = offered
    const { id: task_id } = task
    // The sweep of expired tasks will end it.
    if (isOver(task) || task.wait?.reason !== 'worker') return undefined
    const attempt = task.attempt + 1
    const lease_id = newId('work')
    // A task that was never claimed has no steps, unless it is a retry.
    const hasSteps = task.attempt > 0 || task.retried_from !== null
    const steps = hasSteps ? ((await listSteps(tx, [task_id])).get(task_id) ?? []) : []
    const held = { ...task, attempt, worker_id: lease_id }
    // To answer the worker sooner, the conversation is read in parallel if it does not depend on the claim, and the
    // last statements are sent with the commit.
    const early = hasSteps || task.unseen > 0 ? undefined : conversationOf(context, held, { steps, hasMessages: false })
    early?.catch(() => {})
    const change = taken(task, { lease_id, worker, reads: steps.length })
    const lease = { lease_id, lease_hash, lease_seconds, attempt, claimed_by: user_id, credential_id }
    const until = leaseWork(tx, task_id, { ...lease, worker: worker === null ? null : cleanText(worker) })
    await tx.leave([until])
    const published = await applyChanges(tx, queue, [change])
    if (read) await tx.leave([read(tx, task_id, hasSteps)])
    return { task: held, offered, steps, early, until, published, changes: [change] }
  }, 'locksFirst')
  if (!claimed) return undefined
  const { task, offered, steps, early, published, changes } = claimed
  context.onJournaled({ published, deferred: agentsWithDeferred(changes) })
  const messages = await (early ?? conversationOf(context, task, { steps, hasMessages: true }))
  return { task_id: task.id, queue: offered.queue, attempt: task.attempt, until: await claimed.until, messages }
}

/** The claim of a locked task by a worker, which reads all new messages. */
function taken(
  task: LockedTask & { work: TaskWork },
  { lease_id, worker, reads }: { lease_id: string; worker: string | null; reads: number },
): TaskChange {
  const { events: _, logs: __, ...change } = take(task, lease_id)
  const attempt = task.attempt + 1
  const isFirst = task.started_at === null
  return {
    ...change,
    ...(task.unseen > 0 && { read: { before_step: reads } }),
    events: [
      isFirst
        ? { type: 'task.started', data: { attempt } }
        : { type: 'task.resumed', data: { attempt, reason: 'worker' } },
    ],
    logs: [
      {
        level: 'info',
        message: isFirst ? 'Task started' : 'Task resumed',
        context: { attempt, worker },
      },
    ],
  }
}

async function conversationOf(
  context: RemoteContext,
  task: LockedTask & { work: TaskWork },
  { steps, hasMessages }: { steps: Step[]; hasMessages: boolean },
): Promise<StoredMessage[]> {
  const run = runOf(context, task, steps)
  try {
    await prepareRun(context, run, { hasMessages })
    const { system_prompt } = run.work.config
    const messages = [...run.messages, ...answersOf(steps)].toSorted((a, b) => a.before_step - b.before_step)
    return [
      ...(system_prompt === undefined || system_prompt === ''
        ? []
        : [{ role: 'system' as const, content: system_prompt }]),
      ...conversation({ history: run.history, input: run.work.input, steps: [], messages }),
    ]
  } finally {
    run.end()
  }
}

/** The answers of people to a task that was parked for input. */
function answersOf(steps: readonly Step[]): ReadMessage[] {
  return steps
    .filter(
      (step) =>
        step.type === 'wait' &&
        step.name === 'request_input' &&
        step.status === 'completed' &&
        inputOf(step).claim !== undefined,
    )
    .map(({ index, output }) => ({ content: (output as { content: string }).content, parts: null, before_step: index }))
}

/** Messages to a locked task that its worker has not received. */
export async function unreadMessages(tx: Sql, task_id: string): Promise<StoredMessage[]> {
  return (await listUnread(tx, task_id)).map(({ content, parts }) => ({
    role: 'user' as const,
    content,
    ...(parts ? { parts } : {}),
  }))
}
