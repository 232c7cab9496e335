import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { isBuiltinTool } from '#contract/tools/tools.ts'
import type { Bus } from '../../events/streams/streams-bus.ts'
import type { Tracing } from '../../platform/tracing/tracing.ts'
import { isTransient, type Sql } from '../../platform/postgres/database.ts'
import { LeaseLost } from '../journal/journal.ts'
import { failed } from '../journal/endings.ts'
import { checkFailurePolicy } from './agent-failure-policy.ts'
import {
  claimCreated,
  claimTask,
  claimTasks,
  type Claimed,
  type CreatedJob,
  type ClaimOptions,
  type Workable,
} from './claim.ts'
import { fetchMax, fetchSize } from '../queue/queue.ts'
import { beginWithClaim, prepareCall, runTask, type RunContext } from './run-task.ts'
import type { InterruptReason, Run } from './run.ts'
import { beginTaskSpan, endTaskSpan } from './spans/spans.ts'
import { knownAfter, type KnownTask } from '../journal/known-task.ts'
import { publishedAt, type PublishedEvents } from '../journal/task-changes.ts'
import type { UsageMeter } from '../journal/usage-meter.ts'
import { remoteQueue, type TaskChange, type TaskError } from '../task.ts'
import { LiveList } from '../../platform/memory/live-list.ts'
import { LiveMap } from '../../platform/memory/live-map.ts'
import { backoff } from '../../platform/backoff.ts'

/** Poll interval of an idle worker: the longest delay that a lost signal causes. */
const poll_ms = 500
/** Delays after failed fetches: doubled up to a maximum. */
const backoff_ms = { first: 100, max: 5000 }
/** While there is a backlog, freed slots accumulate this long, so that one fetch fills several. */
const gather_ms = 2
/** After a stop, model calls in flight get this long before they are aborted; tool calls get longer. */
const grace_ms = 5000
/** The share of all workers' slots that one project may use, so that others do not wait behind its backlog. */
const projectShare = 0.75
/** The share as a number of slots. */
const shareOf = (slots: number): number => Math.max(1, Math.ceil(slots * projectShare))
/** Minimum interval between fetches that prefer other projects behind a backlog, because such a fetch costs more. */
const othersFirst_ms = 50
/** If other workers exist, a worker with this share of its slots in use fetches again whenever a slot is freed. */
const busyShare = 0.25

export interface WorkerOptions extends Pick<ClaimOptions, 'sql' | 'queue' | 'environmentOf'> {
  id: string
  /** Maximum number of tasks that run at the same time. */
  slots: number
  bus: Bus
  context: Omit<RunContext, 'isClosing'>
  meter: UsageMeter
  log: Logger
  /** Called after each claim with its events. */
  publish: (published: Claimed['published']) => void
  onDeferred: (agent_ids: readonly string[]) => void
  /** Called after a claim that found tasks of deleted agents. */
  onOrphaned: () => void
  tracing: Tracing
  /** Assigns the models of a run's project if they are cached; false if they must be read. */
  takeModels: (run: Run) => boolean
  /** Loads what a claimed task needs beyond its row: tools and the history of its thread. */
  prepare: (run: Run) => Promise<void>
}

/**
 * Runs tasks. One loop fetches as many as there are free slots. Signals, freed slots and a poll wake it. All state of a
 * task is in the database, so a killed worker loses nothing.
 */
export class Worker {
  readonly #options: WorkerOptions
  readonly #runs = new LiveMap<Run>()
  /**
   * Whether the last claim failed for another reason than the database: then tasks are claimed without their first
   * step.
   */
  #claimsAlone = false
  /** Runs whose claims are not committed yet, by task. */
  readonly #claimed = new LiveMap<Run>()
  /** Transactions in flight that claim tasks which they create. */
  readonly #creating = new LiveList<Promise<void>>()
  /** Slots that such transactions have reserved, by project. */
  readonly #reserved = new Map<number, number>()
  /** Number of `withTasks` calls that run or wait. */
  #looks = 0
  #isStarted = false
  #isDraining = false
  readonly #running = new LiveList<Promise<void>>()
  readonly #closing = new AbortController()
  readonly #leave: (() => void)[]
  #wake = Promise.withResolvers<void>()
  #isWoken = false
  /** The last fetch was full, so there may be more. */
  #hasMore = false
  /** The last fetch may have left tasks in the queue, because no slot was free, or because a project had its share. */
  #isWithheld = false
  /** Projects of the tasks of the last claim. */
  #served: ReadonlySet<number> = new Set()
  #othersFirst_at = -Infinity
  #loop: Promise<void> = Promise.resolve()
  #claiming: Promise<unknown> = Promise.resolve()
  /** Slots of all living workers. */
  #slotsOfAll: number

  constructor(options: WorkerOptions) {
    this.#options = options
    this.#slotsOfAll = options.slots
    const { bus } = options
    this.#leave = [
      bus.on('jobs', () => this.wake()),
      bus.onGap(() => this.wake()),
      bus.on('agent', (agent_id) => void this.#agentChanged(agent_id)),
      // Also when the agent starts again at once: a restart aborts the calls in flight, which are then repeated.
      bus.on('stop', (agent_id) => this.#interruptAgent(agent_id)),
      bus.on('cancel', (task_id) => this.#find(task_id)?.interrupt('cancel')),
    ]
  }

  start(): void {
    this.#isStarted = true
    this.#loop = this.#fetchLoop()
  }

  /** There may be jobs to fetch. */
  wake(): void {
    this.#isWoken = true
    this.#wake.resolve()
  }

  get running(): number {
    return this.#runs.size
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** A draining worker claims no more tasks and completes those that it runs. */
  setDraining(isDraining: boolean): void {
    if (isDraining === this.#isDraining) return
    this.#isDraining = isDraining
    this.#hasMore = false
    this.#options.log.info(
      isDraining ? 'the worker is draining; it claims no more tasks' : 'the worker claims tasks again',
    )
    this.wake()
  }

  setSlotsOfAll(slots: number): void {
    this.#slotsOfAll = Math.max(slots, this.#options.slots)
  }

  /** Runs `look` with the ids of this worker's tasks, while no claim is in flight. */
  async withTasks<T>(look: (task_ids: string[]) => Promise<T>): Promise<T> {
    this.#looks += 1
    const before = Promise.all([this.#claiming, ...this.#creating.values()])
    const looked = before.then(() => look(this.#runs.keys())).finally(() => (this.#looks -= 1))
    this.#claiming = looked.catch(() => {})
    return looked
  }

  /** Aborts calls in flight. Results for lost tasks could not be written anyway. */
  interrupt(tasks: readonly { id: string; reason: InterruptReason }[]): void {
    for (const { id, reason } of tasks) this.#find(id)?.interrupt(reason)
  }

  /** A signal may arrive before this process knows that the claim committed. */
  #find(task_id: string): Run | undefined {
    return this.#claimed.get(task_id) ?? this.#runs.get(task_id)
  }

  /** Stops claiming, and aborts calls that do not end in time. Every task is ended or requeued. */
  async stop(): Promise<void> {
    for (const leave of this.#leave) leave()
    this.#closing.abort()
    this.wake()
    await this.#loop
    const interrupt = setTimeout(() => {
      for (const run of this.#runs.values()) run.interrupt('shutdown')
    }, grace_ms)
    await Promise.all(this.#creating.values())
    await Promise.all(this.#running.values())
    clearTimeout(interrupt)
  }

  async #fetchLoop(): Promise<void> {
    for (let failures = 0; !this.#closing.signal.aborted;) {
      try {
        await this.#fetch()
        failures = 0
      } catch (error) {
        this.#options.log.warn({ err: error }, 'tasks could not be fetched; retrying')
        failures += 1
        await delay(backoff(failures, backoff_ms), undefined, { signal: this.#closing.signal }).catch(() => {})
      }
      await this.#sleep()
    }
  }

  async #sleep(): Promise<void> {
    const free = this.#free
    if (this.#hasMore && free > 0 && !this.#isDraining) {
      // Under saturation, a fetch for each freed slot would cost more than the task.
      if (free < Math.min(fetchMax, this.#options.slots) / 4) await delay(gather_ms)
      return
    }
    if (!this.#isWoken) {
      const timer = setTimeout(() => this.#wake.resolve(), poll_ms)
      await this.#wake.promise
      clearTimeout(timer)
    }
  }

  async #fetch(): Promise<void> {
    this.#isWoken = false
    this.#wake = Promise.withResolvers()
    const count = this.#free
    this.#isWithheld = count <= 0
    if (count <= 0 || this.#isDraining) return
    await this.#claiming
    const claiming = this.#claim(count)
    this.#claiming = claiming.catch(() => {})
    await claiming
  }

  async #claim(count: number): Promise<void> {
    const claimed: Run[] = []
    try {
      await this.#take(count, claimed)
      this.#claimsAlone = false
    } catch (error) {
      this.#claimsAlone = !isTransient(error)
      throw error
    } finally {
      for (const { claim } of claimed) this.#claimed.delete(claim.task_id)
    }
  }

  /** Claims tasks. Adds their runs to `claimed`, even if the claim then fails. */
  async #take(count: number, claimed: Run[]): Promise<void> {
    const { sql, queue, id, environmentOf, publish, onDeferred, onOrphaned } = this.#options
    const perProject = shareOf(this.#slotsOfAll)
    const behind = this.#projectsBehind()
    const wasShareTaken = this.#isShareTaken()
    const { runs, fetched, published, deferred, orphaned } = await claimTasks({
      sql,
      queue,
      worker_id: id,
      count,
      perProject,
      behind,
      environmentOf,
      begin: (run, task) => {
        claimed.push(run)
        this.#claimed.set(run.claim.task_id, run)
        return this.#beginEarly(run, task)
      },
    })
    publish(published)
    onDeferred(deferred)
    if (orphaned) onOrphaned()
    if (runs.length > 0) this.#served = new Set(runs.map(({ project_id }) => project_id))
    for (const run of runs) this.#begin(run)
    // A fetch that was not full had all there was, unless it had two parts, or a project's share held tasks back.
    const isShareTaken = this.#isShareTaken()
    this.#isWithheld = wasShareTaken || isShareTaken
    this.#hasMore = fetched > 0 && (fetched >= fetchSize(count) || behind.length > 0 || isShareTaken)
  }

  /**
   * Claims tasks that `tx` created, with their first calls, if slots are free and no job waits for them (decision
   * 0028). They start after the commit. Returns the ids of the claimed tasks; the others are fetched as usual.
   */
  async claimCreated(tx: Sql, jobs: readonly CreatedJob[]): Promise<ReadonlySet<string>> {
    const chosen = this.#chooseCreated(jobs)
    if (chosen.length === 0) return new Set()
    const runs: Run[] = []
    const { release, giveUp } = this.#holdSlots(chosen, runs)
    tx.afterRollback(giveUp)
    const { queue, id, environmentOf, publish, onDeferred, onOrphaned } = this.#options
    const { published, deferred, orphaned } = await claimCreated(tx, {
      queue,
      worker_id: id,
      jobs: chosen,
      environmentOf,
      begin: (run, task) => {
        runs.push(run)
        this.#claimed.set(run.claim.task_id, run)
        return this.#beginEarly(run, task)
      },
    })
    tx.afterCommit(() => {
      publish(published)
      onDeferred(deferred)
      if (orphaned) onOrphaned()
      for (const run of runs) this.#begin(run)
      release()
    })
    return new Set(runs.map(({ claim }) => claim.task_id))
  }

  /**
   * Claims new tasks before they are stored, if slots are free and no job waits for them. `store` stores them with
   * their claims and first calls in one statement, and returns when it stored which of them. Returns the ids of the
   * stored tasks; the others are unchanged. With `opensTools`, tools that must read the database may be opened, because
   * no transaction waits for that.
   */
  async claimUnstored(
    sql: Sql,
    tasks: readonly Workable[],
    store: (changes: readonly TaskChange[]) => Promise<ReadonlyMap<string, StoredClaim>>,
    { opensTools }: { opensTools: boolean },
  ): Promise<ReadonlySet<string>> {
    const chosen = this.#chooseCreated(tasks.filter(({ work }) => remoteQueue(work.config) === undefined))
    if (chosen.length === 0) return new Set()
    const runs: Run[] = []
    const { release, giveUp } = this.#holdSlots(chosen, runs)
    const { id, environmentOf, publish } = this.#options
    const begin: NonNullable<ClaimOptions['begin']> = (run, task) => {
      runs.push(run)
      this.#claimed.set(run.claim.task_id, run)
      return this.#beginEarly(run, task, opensTools)
    }
    const claims = chosen.map((task) => claimTask(task, { worker_id: id, environmentOf, begin }))
    let changes: TaskChange[]
    let stored: ReadonlyMap<string, StoredClaim>
    try {
      // No claim may still be in progress when the slots are released.
      await Promise.allSettled(claims)
      changes = await Promise.all(claims)
      const storing = store(changes)
      // Who awaits it below handles its failure.
      storing.catch(() => {})
      // The statement leaves first; the requests are prepared while PostgreSQL is at work.
      await nextTurn()
      for (const run of runs) prepareCall(run, this.#context)
      stored = await storing
    } catch (error) {
      giveUp()
      throw error
    }
    sql.afterRollback(giveUp)
    sql.afterCommit(() => {
      const changeOf = new Map(changes.map((change) => [change.task.id, change]))
      publish(changes.flatMap((change) => publishedOnce(change, stored)))
      for (const run of runs) {
        const claimed = stored.get(run.claim.task_id)
        if (!claimed) {
          run.end()
          continue
        }
        run.claim.known = knownOfClaim(changeOf.get(run.claim.task_id)!, claimed)
        this.#begin(run)
        run.storing?.resolve()
        run.storing = undefined
      }
      release()
    })
    return new Set(stored.keys())
  }

  /**
   * Reserves slots for new tasks until it is known that their claims are stored (`release`) or not (`giveUp`). `runs`
   * are the started ones.
   */
  #holdSlots(
    chosen: readonly { project_id: number }[],
    runs: readonly Run[],
  ): { release: () => void; giveUp: () => void } {
    const over = Promise.withResolvers<void>()
    const place = this.#creating.add(over.promise)
    for (const { project_id } of chosen) this.#reserve(project_id, 1)
    const release = (): void => {
      for (const { project_id } of chosen) this.#reserve(project_id, -1)
      for (const { claim } of runs) this.#claimed.delete(claim.task_id)
      this.#creating.remove(place)
      over.resolve()
    }
    const giveUp = (): void => {
      release()
      for (const run of runs) run.end()
    }
    return { release, giveUp }
  }

  /**
   * The new tasks that this worker may claim now: no other task waits for its slots, and no project exceeds its share.
   */
  #chooseCreated<T extends { project_id: number }>(jobs: readonly T[]): T[] {
    const mayClaim = this.#isStarted && !this.#isDraining && !this.#closing.signal.aborted
    if (!mayClaim || this.#looks > 0 || this.#claimsAlone || this.#hasMore) return []
    const perProject = shareOf(this.#options.slots)
    const used = this.#usedByProject()
    let free = this.#free
    const chosen = jobs.filter(({ project_id }) => {
      const of = used.get(project_id) ?? 0
      if (free <= 0 || of >= perProject) return false
      free -= 1
      used.set(project_id, of + 1)
      return true
    })
    // The others wait in the queue, and later tasks must not overtake them.
    if (chosen.length < jobs.length) this.#hasMore = true
    return chosen
  }

  /** Slots in use or reserved, by project. */
  #usedByProject(): Map<number, number> {
    const used = new Map(this.#reserved)
    for (const { project_id } of this.#runs.values()) used.set(project_id, (used.get(project_id) ?? 0) + 1)
    return used
  }

  /**
   * Whether other workers' tasks of a project may have kept this worker from fetching more of them. It does not know
   * what others run.
   */
  #mayOthersWithhold(): boolean {
    const { slots } = this.#options
    return this.#slotsOfAll > slots && this.#runs.size >= slots * busyShare
  }

  #isShareTaken(): boolean {
    return [...this.#usedByProject().values()].some((used) => used >= shareOf(this.#options.slots))
  }

  #reserve(project_id: number, count: number): void {
    const left = (this.#reserved.get(project_id) ?? 0) + count
    if (left === 0) this.#reserved.delete(project_id)
    else this.#reserved.set(project_id, left)
  }

  get #free(): number {
    let reserved = 0
    for (const count of this.#reserved.values()) reserved += count
    return this.#options.slots - this.#runs.size - reserved
  }

  #allRuns(): Run[] {
    return [...this.#runs.values(), ...this.#claimed.values()]
  }

  /**
   * Projects that must not keep others waiting behind a backlog: those with running tasks, and those of the last claim.
   * So a project without running tasks gets the next free slot, however many jobs of others precede its own.
   */
  #projectsBehind(): number[] {
    const now = performance.now()
    if (!this.#hasMore || now - this.#othersFirst_at < othersFirst_ms) return []
    this.#othersFirst_at = now
    return [...new Set([...this.#served, ...this.#runs.values().map(({ project_id }) => project_id)])]
  }

  /** Starts the first call of a new task with its claim, if everything that it needs is known. */
  async #beginEarly(run: Run, task: Workable, opensTools = false): ReturnType<NonNullable<ClaimOptions['begin']>> {
    // If a first step cannot be written, only its task must fail, by its run, and not the claim of the others.
    if (this.#claimsAlone) return undefined
    const { config } = run.work
    if (task.has_budget || run.hasJournal || run.work.thread_id !== null) return undefined
    if (!opensTools && !(config.tools ?? []).every(isBuiltinTool)) return undefined
    if (!this.#options.takeModels(run) && !opensTools) return undefined
    await this.#options.prepare(run)
    return beginWithClaim(run, task, this.#context)
  }

  get #context(): RunContext {
    return { ...this.#options.context, isClosing: () => this.#closing.signal.aborted }
  }

  #begin(run: Run): void {
    const { task_id } = run.claim
    // Other processes took this worker for dead and requeued the task; the earlier run can write nothing more.
    this.#runs.get(task_id)?.interrupt('lost')
    this.#runs.set(task_id, run)
    this.#options.meter.begin(run.agent_id)
    const running = this.#run(run).finally(() => {
      run.end()
      this.#options.meter.end(run.agent_id)
      if (run.message_id) this.#options.context.hub.forget(task_id, run.message_id)
      if (this.#runs.get(task_id) === run) this.#runs.delete(task_id)
      this.#running.remove(place)
      if (this.#hasMore || this.#isWithheld || this.#mayOthersWithhold()) this.wake()
    })
    const place = this.#running.add(running)
  }

  async #run(run: Run): Promise<void> {
    const { log, sql, prepare, tracing } = this.#options
    const before = run.usage
    let error_type: string | undefined
    try {
      run.span = beginTaskSpan(tracing, run)
      await prepare(run)
      const error = await runTask(run, this.#context)
      error_type = error?.code ?? (run.expired ? 'timeout' : undefined)
      if ((error || run.expired) && (await checkFailurePolicy(sql, run.agent_id)))
        this.#options.bus.notify('agent', run.agent_id)
    } catch (error) {
      error_type = error instanceof LeaseLost ? 'lease_lost' : 'internal_error'
      if (error instanceof LeaseLost)
        return log.info(
          { task_id: run.claim.task_id, attempt: run.claim.attempt },
          'a run lost its lease; its task was taken over, canceled or deleted',
        )
      log.error(
        { err: error, task_id: run.claim.task_id },
        'a run failed with an unexpected error; its task fails or is requeued',
      )
      // If the database is unavailable, the lease expires, or the next heartbeat requeues the task.
      if (!isTransient(error)) await this.#failInternally(run)
    } finally {
      endTaskSpan(run.span, before, run.usage, error_type)
    }
  }

  /** A bug in Cadre fails the task with a clear code, instead of being retried forever. */
  async #failInternally(run: Run): Promise<void> {
    const error: TaskError = {
      code: 'internal_error',
      message: 'Something went wrong on our side.',
      retryable: true,
      step_id: null,
    }
    await this.#options.context.journal
      .write(run.claim, (task) => failed(task, error, run))
      .catch((cause: unknown) => {
        if (!(cause instanceof LeaseLost))
          this.#options.log.error(
            { err: cause, task_id: run.claim.task_id },
            'could not mark a task as failed; it will be requeued',
          )
      })
  }

  /** Aborts the calls of a stopped or deleted agent; those of a paused agent complete. */
  async #agentChanged(agent_id: string): Promise<void> {
    const runs = this.#allRuns()
    if (!runs.some((run) => run.agent_id === agent_id)) return
    try {
      const [agent] = await this.#options.sql<{ state: string }>`
        select case when status = 'updating' then settles_to else status end as state from agent where id = ${agent_id}`
      if (agent && ['running', 'creating', 'paused'].includes(agent.state)) return
    } catch (error) {
      this.#options.log.warn({ err: error, agent_id }, 'the state of an agent could not be read; its calls are aborted')
    }
    this.#interruptAgent(agent_id)
  }

  #interruptAgent(agent_id: string): void {
    for (const run of this.#allRuns()) if (run.agent_id === agent_id) run.interrupt('agent')
  }
}

/** When a claim was stored with its task, and the version of the task's row. */
export interface StoredClaim {
  at: string
  row_version: string
}

function knownOfClaim(change: TaskChange, { at, row_version }: StoredClaim): KnownTask {
  const { task: workable, expires_at } = change
  // The known task does not need what the run has read.
  const { work: _work, ...task } = workable as Workable
  // The claim was decided by this process's clock, and stored by the database's.
  const ends_at = expires_at && new Date(Date.parse(at) + Date.parse(expires_at) - Date.parse(task.now)).toISOString()
  const asStored = { ...task, now: at, event_at: at, created_at: at }
  return knownAfter({ ...change, task: asStored, expires_at: ends_at ?? null }, row_version)
}

/** The events of a claim that was stored. */
function publishedOnce(change: TaskChange, stored: ReadonlyMap<string, StoredClaim>): PublishedEvents[] {
  const claimed = stored.get(change.task.id)
  return claimed === undefined ? [] : [publishedAt(change, claimed.at)]
}
