import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { planByIndex, type Sql } from '../../platform/postgres/database.ts'
import { canceled, cutShort, readReceipt } from '../journal/cancel.ts'
import { agentHolds, expired, failed, joined, waiting } from '../journal/endings.ts'
import type { Job, NewJob, Queue } from '../queue/queue.ts'
import { Run } from './run.ts'
import { applyChanges, agentsWithDeferred, type PublishedEvents } from '../journal/task-changes.ts'
import { lockTasksWithWork } from '../journal/task-rows.ts'
import { remoteQueue, type LockedTask, type TaskWork, type TaskChange } from '../task.ts'

export interface ClaimOptions {
  sql: Sql
  queue: Queue
  worker_id: string
  count: number
  /** Maximum number of active tasks of one project, over all processes. */
  perProject: number
  /** Projects whose tasks are claimed only if there are not enough others. */
  behind?: readonly number[]
  /** Decrypts an agent's environment variables; undefined if they cannot be decrypted. */
  environmentOf: (agent_id: string, environment: Buffer | null) => Readonly<Record<string, string>> | undefined
  /**
   * The start of a claimed task in the same write, such as its first model call; undefined if its run decides that
   * later. It must not wait for the network.
   */
  begin?: (run: Run, task: Workable) => Promise<Partial<TaskChange> | undefined>
}

export interface Claimed {
  runs: Run[]
  /**
   * Number of fetched jobs, including those whose tasks were not claimed. If it is the number requested, there may be
   * more.
   */
  fetched: number
  published: PublishedEvents[]
  /** Agents whose tasks were deferred: see `agentsWithDeferred`. */
  deferred: string[]
  /** Whether some tasks belonged to a deleted agent: they are canceled, and must be purged. */
  orphaned: boolean
}

/**
 * Claims tasks from the queue. Fetching the jobs and claiming the tasks is one transaction, so a job is never active
 * without a worker that knows of it. If a task may not run now (it was canceled, its agent is paused, its time is
 * over), its job is removed instead.
 */
export async function claimTasks(options: ClaimOptions): Promise<Claimed> {
  const { sql, queue, worker_id, count, perProject, behind, environmentOf, begin } = options
  const runs: Run[] = []
  const claiming = sql.begin(async (tx): Promise<Claimed> => {
    const jobs = await queue.fetch(tx, count, perProject, behind)
    if (jobs.length === 0) return { runs: [], fetched: 0, published: [], deferred: [], orphaned: false }
    await planByIndex(tx)
    const tasks = await lockTasksWithWork(
      tx,
      jobs.map(({ task_id }) => task_id),
    )
    const found = jobs.map((job) => ({ job, task: named(job, tasks.get(job.task_id)) }))

    const changes = await claimEach(
      tx,
      found.flatMap(({ task }) => task ?? []),
      { worker_id, environmentOf, begin: (run, task) => (runs.push(run), begin?.(run, task)) },
    )
    const published = await applyChanges(tx, queue, changes)
    await queue.discard(
      tx,
      found.filter(({ task }) => !task).map(({ job }) => job.id),
    )
    const orphaned = found.some(({ task }) => task && !task.agent)
    return { runs, fetched: jobs.length, published, deferred: agentsWithDeferred(changes), orphaned }
  })
  return claiming.catch((error: unknown) => {
    for (const run of runs) run.end()
    throw error
  })
}

/**
 * Claims tasks that this transaction created, and marks their jobs active. `begin` is called for each. Tasks that may
 * not run now are deferred, as if their jobs were fetched.
 */
export async function claimCreated(
  tx: Sql,
  { queue, worker_id, jobs, environmentOf, begin }: CreatedOptions,
): Promise<Pick<Claimed, 'published' | 'deferred' | 'orphaned'>> {
  const [active, tasks] = await Promise.all([
    queue.activate(
      tx,
      jobs.map(({ id }) => id),
    ),
    lockTasksWithWork(
      tx,
      jobs.map(({ task_id }) => task_id),
    ),
  ])
  const found = active.flatMap((job) => named(job, tasks.get(job.task_id)) ?? [])
  const changes = await claimEach(tx, found, { worker_id, environmentOf, begin })
  return {
    published: await applyChanges(tx, queue, changes),
    deferred: agentsWithDeferred(changes),
    orphaned: found.some(({ agent }) => !agent),
  }
}

/** The job of a task that is being created. */
export type CreatedJob = Pick<NewJob, 'id' | 'task_id' | 'project_id'>

/** How tasks are claimed in the transaction that creates them. */
interface CreatedOptions extends Pick<ClaimOptions, 'queue' | 'worker_id' | 'environmentOf'> {
  jobs: readonly CreatedJob[]
  /** Like in `ClaimOptions`; called for each claimed task. */
  begin: NonNullable<ClaimOptions['begin']>
}

/** The changes of tasks whose jobs were fetched: a claim, an offer to remote workers, or a deferral. */
async function claimEach(
  tx: Sql,
  tasks: readonly Workable[],
  {
    worker_id,
    environmentOf,
    begin,
  }: Pick<CreatedOptions, 'worker_id' | 'environmentOf'> & {
    begin: (...of: Parameters<CreatedOptions['begin']>) => ReturnType<CreatedOptions['begin']> | undefined
  },
): Promise<TaskChange[]> {
  const changes: TaskChange[] = []
  for (const task of tasks) {
    changes.push(
      (await deferTask(tx, task)) ?? offered(task) ?? (await claimTask(task, { worker_id, environmentOf, begin })),
    )
  }
  return cutShort(tx, changes)
}

/** The offer of a task that remote workers run: it waits for one, and keeps its slot of its agent. */
function offered(task: Workable): TaskChange | undefined {
  const queue = remoteQueue(task.work.config)
  if (queue === undefined) return undefined
  return {
    ...waiting(task, 'worker', undefined, { queue }),
    task,
    slot: task.slot,
    crashes: task.crashes,
    offer: { queue },
  }
}

/** The claim of a task that may run, joined with its start. */
export async function claimTask(
  task: Workable,
  {
    worker_id,
    environmentOf,
    begin,
  }: Pick<CreatedOptions, 'worker_id' | 'environmentOf'> & {
    begin: (...of: Parameters<CreatedOptions['begin']>) => ReturnType<CreatedOptions['begin']> | undefined
  },
): Promise<TaskChange> {
  const change = take(task, worker_id)
  // Null counts: after the claim, a task without a time limit is no longer ended by its time limit in the queue.
  const expires_at = change.expires_at === undefined ? task.expires_at : change.expires_at
  const run = new Run({
    claim: { task_id: task.id, worker_id, attempt: task.attempt + 1, writes: 0 },
    task,
    work: task.work,
    expires_at,
    environment: environmentOf(task.agent_id, task.work.environment),
  })
  const first = await begin(run, { ...task, expires_at })
  return first ? { ...joined(change, first), task } : change
}

/** A task together with what its run needs. */
export type Workable = LockedTask & { work: TaskWork }

/** The task of a fetched job, with the job's attempt; undefined if the task no longer names this job. */
export function named(job: Job, task: Workable | undefined): Workable | undefined {
  if (!task || task.job_id !== job.id || isFinished(task.status) || job.attempt <= task.job_attempt) return undefined
  // The queue itself requeued the job as a last resort, although its worker was not found dead.
  const crashes = task.status === 'running' && task.worker_id !== null ? task.crashes + 1 : task.crashes
  return { ...task, crashes, job_attempt: job.attempt }
}

export function isOver({ expires_at, now }: LockedTask): boolean {
  return expires_at !== null && Date.parse(expires_at) <= Date.parse(now)
}

/** The change of a task that may not run now; undefined if it may. */
export async function deferTask(tx: Sql, task: LockedTask): Promise<TaskChange | undefined> {
  const job = { kind: 'end' } as const
  // Created while its agent was being deleted, so it must be purged with the rest.
  if (!task.agent)
    await tx`
      insert into removed_agent (agent_id) values (${task.agent_id})
      on conflict (agent_id) do update set purged_at = null, removed_at = clock_timestamp()`
  if (!task.agent || task.cancel) {
    const request = task.cancel ?? {
      reason: 'The agent was deleted.',
      mode: 'force' as const,
      user_id: task.created_by,
    }
    return { ...canceled(task, request, await readReceipt(tx, task.id)), job }
  }
  if (isOver(task)) return { ...expired(task), task, job }
  // Before the checks that make it wait, because a waiting task does not fail (see the life cycle of tasks).
  if (task.crashes >= task.max_attempts) {
    const died = task.crashes === 1 ? 'A worker' : `${task.crashes} workers`
    const message = `${died} died while running this task.`
    return { ...failed(task, { code: 'attempts_exhausted', message, retryable: true, step_id: null }), task, job }
  }
  const held = agentHolds(task)
  if (held) return task.status === 'queued' ? { task, job } : { ...waiting(task, held, undefined), task }
  // The task continues after a wait, or was sent before its agent had a limit. It waits for its turn for a slot.
  const isLimited = task.agent.max_concurrent_tasks !== null
  if (isLimited && task.slot !== 'held' && task.status !== 'running') return { task, job, slot: 'wanted' }
  return undefined
}

/** The change of a claim: the task's next attempt, which alone may write from now on. */
export function take(task: Workable, worker_id: string): TaskChange {
  const { work } = task
  const attempt = task.attempt + 1
  const seconds = work.timeout_seconds ?? work.config.timeout_seconds
  const first = task.started_at === null
  const limit = first
    ? { expires_at: seconds ? new Date(Date.parse(task.now) + seconds * 1000).toISOString() : null }
    : {}
  return {
    task,
    status: 'running',
    wait: null,
    claimed: { worker_id, job_attempt: task.job_attempt },
    crashes: task.crashes,
    ...limit,
    ...startEvents(task, attempt),
  }
}

function startEvents(task: LockedTask, attempt: number): Required<Pick<TaskChange, 'events' | 'logs'>> {
  if (task.status === 'queued') {
    return {
      events: [{ type: 'task.started', data: { attempt } }],
      logs: [{ level: 'info', message: 'Task started', context: { attempt } }],
    }
  }
  if (task.status === 'waiting') {
    const reason = task.wait?.reason ?? null
    return {
      events: [{ type: 'task.resumed', data: { attempt, reason } }],
      logs: [{ level: 'info', message: 'Task resumed', context: { attempt, reason } }],
    }
  }
  const reason = task.crashes > 0 ? 'worker_lost' : 'handed_back'
  return {
    events: [{ type: 'task.retrying', data: { attempt, reason } }],
    logs: [
      {
        level: task.crashes > 0 ? 'warn' : 'info',
        message: 'Task taken over from another worker',
        context: { attempt, reason },
      },
    ],
  }
}
