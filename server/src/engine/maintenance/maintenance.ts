import type { Logger } from 'pino'
import { startPeriodic, type PeriodicJob } from '../../platform/periodic.ts'
import type { Bus } from '../../events/streams/streams-bus.ts'
import type { Database } from '../../platform/postgres/database.ts'
import { startHeartbeat, type Heartbeat } from './heartbeat.ts'
import {
  reapWorker,
  requeueTasks,
  heartbeat_ms,
  lease_seconds,
  listDeadWorkers,
  listInterrupted,
  readWorkers,
  recordDrained,
  registerWorker,
  type WorkerIdentity,
} from './leases.ts'
import type { BudgetWaits } from '../dispatch/budget-waits.ts'
import type { CredentialWaits } from '../dispatch/credential-waits.ts'
import type { Backlogs } from '../dispatch/backlogs.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import { agentLimitKey, listForgottenLimits } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { loseToolCalls } from '../commands/answer-tool-calls.ts'
import { expireApprovals } from '../commands/resolve-approval.ts'
import { expireTasks, forceCancels, listAgentsWithDeferred, markDue, purgeRemovedAgents } from './sweeps.ts'
import type { PublishedEvents } from '../journal/task-changes.ts'
import { addUsage } from '../journal/usage.queries.ts'
import { hasEndedLeases, reofferExpired } from '../journal/tool-calls.queries.ts'
import type { UsageMeter } from '../journal/usage-meter.ts'
import type { Worker } from '../run/worker.ts'

export interface MaintenanceOptions {
  database: Database
  queue: Queue
  bus: Pick<Bus, 'on'>
  worker: Worker
  me: WorkerIdentity
  meter: UsageMeter
  log: Logger
  publish: (published: readonly PublishedEvents[]) => void
  onDeferred: (agent_ids: readonly string[]) => void
  dispatcher: Dispatcher
  backlogs: Backlogs
  budgets: BudgetWaits
  credentials: CredentialWaits
  /** Jobs were sent or requeued: wakes the workers. */
  wake: () => void
  /** Calls of these tools can be claimed again. */
  offered: (names: readonly string[]) => void
  /** Continues delegations that dead processes left unfinished. */
  delegate: () => Promise<void>
  /** Takes tasks back from remote workers that are gone. */
  takeBack: () => Promise<void>
  /** Asks the worker that runs the task, in any process, to cancel it. */
  interrupt: (task_id: string) => void
  /**
   * Whether this process runs tasks. One that does not only sends heartbeats, and leaves everything else to those that
   * do.
   */
  works: boolean
}

/**
 * Periodic jobs of a process: the heartbeat and, if the process runs tasks, the recovery of what other processes left
 * behind.
 */
export interface Maintenance {
  /** Resolves when the worker is registered and the tasks of its predecessor are requeued. */
  ready: Promise<void>
  /** Whether no worker was seen for a while (decision D102). */
  isSilent(): boolean
  /** Starts the purge of deleted agents now. */
  purge(): void
  stop(): Promise<void>
}

const silent_ms = 60_000
/** A process that could not read the workers for this long cannot tell which of them are dead. */
const blind_ms = 3000
/** Offset between jobs with the same interval, so that they do not need one connection each at the same moment. */
const apart_ms = 90
const due_ms = 5000
const backlogs_ms = 1000
const forgotten_ms = 1000
/** A freed limit that was not dispatched within this time counts as forgotten: its process is gone. */
const forgotten_seconds = 2
const forgottenMax = 1000
const deferred_ms = 60_000
const budgets_ms = 2000
const credentials_ms = 5000
const purge_ms = 60_000
const lost_ms = 60_000
const usage_ms = 5000
const leases_ms = 2000
const remoteLeases_ms = 1000
const delegations_ms = 3000
/** Maximum number of tool calls with ended leases that one statement offers again. */
const leasesBatch = 1000

export function startMaintenance(options: MaintenanceOptions): Maintenance {
  const {
    database,
    queue,
    bus,
    worker,
    me,
    meter,
    log,
    publish,
    onDeferred,
    dispatcher,
    backlogs,
    budgets,
    credentials,
    wake,
    interrupt,
    offered,
    delegate,
    takeBack,
    works,
  } = options
  const { sql } = database
  const periodicJobs: PeriodicJob[] = []
  let seen_at = performance.now()
  /** When a worker of any process was seen last. */
  let worked_at = seen_at
  /**
   * While this process could not reach the database, other workers may not have reached it either. They get one lease
   * of time before they count as dead.
   */
  let blind_at = -Infinity

  const repeat = (name: string, every_ms: number, work: () => Promise<unknown>): PeriodicJob => {
    const periodicJob = startPeriodic(work, {
      every_ms,
      first_ms: every_ms + ((periodicJobs.length * apart_ms) % every_ms),
      onError: (error) => log.warn({ err: error, job: name }, 'a periodic job of the engine failed; it will run again'),
    })
    periodicJobs.push(periodicJob)
    return periodicJob
  }
  const beat = async (): Promise<void> => {
    const { registered, is_draining, slots } = await readWorkers(sql, me.id)
    if (performance.now() - seen_at > blind_ms) blind_at = performance.now()
    seen_at = performance.now()
    if (slots > 0) worked_at = seen_at
    worker.setSlotsOfAll(slots)
    // Without a row, others took this worker for dead and requeued its tasks. It continues under the same id with the
    // tasks that it still holds.
    if (registered) worker.setDraining(is_draining)
    else await registerWorker(sql, me, { isDraining: worker.isDraining })
    if (!works) return
    await worker.withTasks(async (except) => {
      // No claim is in flight here, so the tasks that it runs are all that it holds.
      if (worker.isDraining && except.length === 0) await recordDrained(sql, me.id)
      worker.interrupt(await listInterrupted(sql, me.id, except))
      const { count } = await requeueTasks(sql, queue, me.id, { crashed: true, except })
      if (count > 0) wake()
    })
  }
  const reap = async (starting = false): Promise<void> => {
    if (!starting && performance.now() - blind_at < lease_seconds * 1000) return
    for (const id of await listDeadWorkers(sql, me, { starting })) {
      const given = await reapWorker(sql, queue, id)
      if (given === undefined) continue
      const then = given > 0 ? 'its tasks were requeued' : 'it held no tasks'
      log.info({ worker: id, tasks: given }, `a worker is dead; ${then}`)
      if (given > 0) wake()
    }
  }
  const wakeDue = async (): Promise<void> => {
    for (let more = true; more;) {
      const due = await markDue(sql)
      dispatcher.free(due.limitKeys)
      more = due.more
    }
  }
  /** Dispatches limits that other processes freed but did not dispatch. */
  const wakeForgotten = async (): Promise<void> =>
    dispatcher.free(await listForgottenLimits(sql, { seconds: forgotten_seconds, limit: forgottenMax }))
  const wakeDeferred = async (): Promise<void> => {
    for (let after: string | undefined = ''; after !== undefined;) {
      const { agents, next } = await listAgentsWithDeferred(sql, after)
      dispatcher.free(agents.map(agentLimitKey))
      after = next
    }
  }
  const sampleUsage = async (): Promise<void> => {
    const shares = meter.sample()
    if (shares.length > 0)
      await sql.begin((tx) =>
        addUsage(
          tx,
          shares.map((share) => ({ ...share, token_subject: null, active: false })),
        ),
      )
  }

  let heartbeat: Heartbeat | undefined
  let leaveBus: (() => void) | undefined
  const ready = (async (): Promise<void> => {
    await registerWorker(sql, me)
    heartbeat = startHeartbeat({ settings: database.settings, worker_id: me.id, log })
    await queue.ready
    if (works) await reap(true)
    // Without this read, a new worker would take its slots for the total of all workers, and take too few tasks of a
    // busy project.
    worker.setSlotsOfAll((await readWorkers(sql, me.id)).slots)
    seen_at = performance.now()
    const heartbeats = repeat('heartbeat', heartbeat_ms, beat)
    leaveBus = bus.on('worker', (id) => {
      if (id === me.id) heartbeats.now()
    })
    if (!works) return
    repeat('dead workers', heartbeat_ms, () => reap())
    repeat('expired tasks', heartbeat_ms, async () => publish(await expireTasks(sql, queue)))
    repeat('expired approvals', heartbeat_ms, async () => {
      for (let more = true; more;) {
        const notice = await sql.begin((tx) => expireApprovals(tx, queue))
        publish(notice.published)
        onDeferred(notice.deferred)
        notice.canceling.forEach(interrupt)
        if (notice.published.length > 0) wake()
        more = notice.more
      }
    })
    repeat('ended leases of tool calls', leases_ms, async () => {
      if (!(await hasEndedLeases(sql))) return
      offered(await reofferExpired(sql, leasesBatch))
      for (let more = true; more;) {
        const lost = await sql.begin((tx) => loseToolCalls(tx, queue))
        publish(lost.published)
        onDeferred(lost.deferred)
        if (lost.published.length > 0) wake()
        more = lost.more
      }
    })
    repeat('ended leases of remote work', remoteLeases_ms, takeBack)
    repeat('delegations', delegations_ms, delegate)
    repeat('late cancellations', heartbeat_ms, async () => publish(await forceCancels(sql, queue)))
    repeat('due tasks', due_ms, wakeDue).now()
    repeat('backlogs', backlogs_ms, async () => void ((await backlogs.refill()) > 0 && wake())).now()
    repeat('lost jobs', lost_ms, async () => {
      const count = await queue.discardLost(sql)
      if (count === 0) return
      log.warn({ jobs: count }, 'jobs without a task were found and discarded')
      wake()
    })
    repeat('concurrency limits without a dispatch', forgotten_ms, wakeForgotten).now()
    repeat('deferred tasks', deferred_ms, wakeDeferred).now()
    // Budget windows end without a signal, and so do calls of other processes.
    repeat('tasks that wait for a budget', budgets_ms, async () => budgets.look())
    // Without a signal: a credential that another process renewed, a task that began to wait while its credential was
    // connected, an agent that works again.
    repeat('tasks that wait for a credential', credentials_ms, async () => credentials.look())
  })()
  const purging = works ? repeat('purge', purge_ms, () => purgeRemovedAgents(sql, queue)) : undefined
  if (works) repeat('usage', usage_ms, sampleUsage)

  return {
    ready,
    isSilent: () => performance.now() - worked_at > silent_ms,
    purge: () => purging?.now(),
    async stop() {
      await ready.catch(() => {})
      leaveBus?.()
      await Promise.all(periodicJobs.map((periodicJob) => periodicJob.stop()))
      // Writes the usage since the last sample before the process ends.
      if (works)
        await sampleUsage().catch((error: unknown) =>
          log.warn({ err: error }, 'the last usage could not be written; it is lost'),
        )
      await heartbeat?.stop()
      await sql`delete from worker where id = ${me.id} and not exists (select from task where worker_id = ${me.id} and status = 'running')`.catch(
        () => {},
      )
    },
  }
}
