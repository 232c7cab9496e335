import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { openProjectFeed } from '../events/streams/project-stream-feed.ts'
import { openBus } from '../events/streams/streams-bus.ts'
import { type Hub, openHub, type TaskEvent } from '../events/streams/streams-hub.ts'
import type { Database, Sql } from '../platform/postgres/database.ts'
import { newId } from '../platform/ids.ts'
import { derivedTraceId } from '../platform/tracing/traceparent.ts'
import { noTracing, type Tracing } from '../platform/tracing/tracing.ts'
import type { Secrets } from '../platform/crypto/secrets.ts'
import { cancelTask, type CancelOutcome } from './journal/cancel.ts'
import type { Engine } from './engine.ts'
import { readEnvironment } from './run/environment.ts'
import { Journal, taskStore } from './journal/journal.ts'
import { presenceLock } from './maintenance/leases.ts'
import type { ModelSource } from './models/model.ts'
import type { OrganizationModels } from './models/organization/organization-models.ts'
import { makeCircuitBreaker } from './models/circuit-breaker.ts'
import { makeCooldown } from './models/cooldown.ts'
import { makeCreation } from './commands/create-tasks.ts'
import { insertTask, type NewTask } from './commands/new-task.ts'
import { openBudgetWaits } from './dispatch/budget-waits.ts'
import { openCredentialWaits } from './dispatch/credential-waits.ts'
import { makeBacklogs } from './dispatch/backlogs.ts'
import { openDispatcher } from './dispatch/dispatcher.ts'
import { agentLimitKey, type LimitKey } from './queue/concurrency-limits.ts'
import { cancelAll, dispatchDeferred, relabelDeferred } from './dispatch/deferred-tasks.ts'
import type { Files } from './files/file-store.ts'
import { openQueue } from './queue/queue.ts'
import { resolveApproval } from './commands/resolve-approval.ts'
import type { JournalNotice } from './journal/resume.ts'
import { sandboxSeconds } from './run/sandbox-seconds.ts'
import { makePrices, type Prices } from './budgets/prices.ts'
import type { Run } from './run/run.ts'
import type { CancelRequest } from './task.ts'
import { sendMessage } from './commands/send-message.ts'
import type { PublishedEvents } from './journal/task-changes.ts'
import { listReadMessages, listSteps } from './journal/task-rows.ts'
import { threadHistory } from './conversation/thread-history.ts'
import type { ToolSource } from './tools/tool.ts'
import { withCallerTools } from './tools/client/client-tools.ts'
import { withDelegates } from './tools/delegate/delegates.ts'
import { answerToolCalls } from './commands/answer-tool-calls.ts'
import { openDelegations } from './commands/delegations.ts'
import { openRemoteWork } from './remote/remote.ts'
import { openToolCalls } from './dispatch/tool-call-claims.ts'
import { makeTurns } from './conversation/turns.ts'
import { startMaintenance } from './maintenance/maintenance.ts'
import { UsageMeter } from './journal/usage-meter.ts'
import type { RunContext } from './run/run-task.ts'
import { Worker } from './run/worker.ts'

export interface EngineOptions {
  database: Database
  log: Logger
  models: ModelSource
  /** Models of organizations that have added providers; without it, all projects use those of the service. */
  organizationModels?: OrganizationModels
  /** Prices of models; by default the built-in list. */
  prices?: Prices
  /** Without it, agents have no tools. */
  tools?: ToolSource
  secrets: Secrets
  /** Without it, tasks have no files. */
  files?: Files
  config: {
    /** Maximum number of tasks that this process runs at the same time. */
    worker_slots: number
    /** Model tokens that a credential may use per hour (decision D90); no limit while rate limits are off. */
    tokens_per_hour: number
    rate_limits?: boolean
    /** Undefined with the embedded database: then only one process at a time uses the data folder. */
    database_url?: string | undefined
    data_dir?: string
  }
  tracing?: Tracing
  /** False in a process that only serves the API: it runs no tasks, and no periodic jobs for other processes. */
  works?: boolean
  /** Called with committed task events, in the process that wrote them. */
  onTaskEvents?: (events: readonly TaskEvent[]) => void
  /** Random number from 0 to 1; tests return a fixed one. */
  random?: () => number
  /** Maximum number of jobs of one project that wait in the queue; tests lower it. */
  waitingMax?: number | undefined
}

/**
 * Starts the engine of this process: its queue, its worker and its maintenance. Resolves at once, so that the service
 * can listen meanwhile; `ready` resolves when tasks are accepted.
 */
export async function startEngine({
  database,
  log,
  models,
  organizationModels,
  prices = makePrices({ own: new Map(), elsewhere: [] }),
  tools,
  secrets,
  files,
  config,
  tracing = noTracing,
  works = true,
  onTaskEvents,
  random = Math.random,
  waitingMax,
}: EngineOptions): Promise<Engine> {
  const { sql } = database
  const worker_id = newId('worker')
  const queue = openQueue({ database, log, supervise: works, waitingMax })
  const bus = openBus({ database, log, name: worker_id, presence: presenceLock(worker_id) })
  const toolCalls = openToolCalls({ sql, bus, log, secrets })
  const hub = subscriptionsOf(openHub({ sql, bus, log }), (events) => {
    toolCalls.requested(events)
    delegations.seen(events)
    remote.offered(events)
    onTaskEvents?.(events)
  })
  const projects = openProjectFeed({ sql, bus, log })
  const meter = new UsageMeter()
  const dispatcher = openDispatcher({ sql, queue, log, wake: () => bus.notify('jobs') })
  const budgets = openBudgetWaits({ sql, queue, log, wake: () => bus.notify('jobs') })
  const credentials = openCredentialWaits({ sql, queue, log, wake: () => bus.notify('jobs') })
  const backlogs = makeBacklogs({ sql, queue })
  const onFreed = (limitKeys: readonly LimitKey[]): void => dispatcher.free(limitKeys)
  const publish = (published: readonly PublishedEvents[]): void => {
    for (const { task_id, events, freed } of published) {
      if (events.length > 0) hub.publish(task_id, events)
      onFreed(freed)
    }
  }
  const onBudgets = ({ waits }: { waits: boolean }): void => {
    if (waits) budgets.waits()
    // A task that waits may have missed a release just before.
    budgets.roomMade()
  }
  // If this process dies before, the maintenance of any other process dispatches them.
  const onDeferred = (agent_ids: readonly string[]): void => onFreed(agent_ids.map(agentLimitKey))
  const tokens_per_hour = config.rate_limits === false ? Infinity : config.tokens_per_hour
  /** Assigns the models of a run's project if they are cached; false if they must be read. */
  const takeModels = (run: Run): boolean => {
    run.models ??= organizationModels?.known(run.modelScope)
    return run.models !== undefined || !organizationModels
  }
  const rereadModels: RunContext['rereadModels'] = async (run, providers_version, on = sql) => {
    const scope = { ...run.modelScope, providers_version }
    const { models: read, version = providers_version } = (await organizationModels?.load(on, scope)) ?? {}
    run.models = read
    run.modelScope = { ...scope, providers_version: version }
  }
  const shared = {
    models,
    rereadModels,
    prices,
    hub,
    tokens_per_hour,
    random,
    cooldown: makeCooldown({ bus }),
    circuitBreaker: makeCircuitBreaker(),
    turns: makeTurns(secrets, log),
    fileSource: files && { sql, files },
    sandboxSeconds: sandboxSeconds(sql, log),
  }
  const prepare = async (run: Run): Promise<void> => {
    if (run.isPrepared) return
    run.isPrepared = true
    if (!run.models) await rereadModels(run, run.modelScope.providers_version)
    await prepareRun(run, { sql, tools })
  }
  const environment = (agent_id: string, stored: Buffer | null) => environmentOf(secrets, log, agent_id, stored)
  const worker = new Worker({
    id: worker_id,
    slots: config.worker_slots,
    sql,
    queue,
    bus,
    meter,
    log,
    publish,
    onDeferred,
    onOrphaned: () => maintenance.purge(),
    context: {
      ...shared,
      journal: new Journal({
        store: taskStore({
          sql,
          indexed: database.indexed,
          queue,
          isAwaited: (task_id) => hub.isAwaited(task_id),
          tokens_per_hour,
        }),
        hub,
        onDeferred,
        onFreed,
        onBudgets,
      }),
      onCredentialWait: () => credentials.look(),
      reload: (run) => reload(sql, run),
    },
    environmentOf: environment,
    tracing,
    takeModels,
    prepare,
  })
  const remote = openRemoteWork(
    {
      ...{ sql, queue, bus, log, worker_id, tracing, onBudgets },
      run: shared,
      environmentOf: environment,
      prepare,
      onJournaled({ published, deferred, sent = false }) {
        publish(published)
        onDeferred(deferred)
        if (sent) bus.notify('jobs')
      },
    },
    { bus, log, secrets },
  )
  const maintenance = startMaintenance({
    database,
    queue,
    bus,
    worker,
    me: { id: worker_id, instance: instanceOf(config, worker_id), slots: works ? config.worker_slots : 0 },
    meter,
    log,
    publish,
    onDeferred,
    dispatcher,
    backlogs,
    budgets,
    credentials,
    wake: () => bus.notify('jobs'),
    interrupt: (task_id) => bus.notify('cancel', task_id),
    offered: (names) => toolCalls.offered(names),
    delegate: () => delegations.sweep(),
    takeBack: () => remote.sweep(),
    works,
  })
  /** After a person's answer: publishes the events, and wakes workers for the task. */
  const afterAnswer = (tx: Sql, { published, deferred }: JournalNotice): void =>
    tx.afterCommit(() => {
      publish(published)
      onDeferred(deferred)
      bus.notify('jobs')
    })
  const creation = makeCreation({
    sql,
    indexed: database.indexed,
    queue,
    isFull: backlogs.isFull,
    onSent: () => bus.notify('jobs'),
    claim: (tx, jobs) => worker.claimCreated(tx, jobs),
    claimUnstored: (...of) => worker.claimUnstored(...of),
  })
  /** With tracing, a task shows the trace of its attempts. */
  const traced = (task: NewTask): NewTask => ({
    ...task,
    trace_id: task.trace_id ?? (tracing.isEnabled ? derivedTraceId(task.id) : null),
  })
  const enqueue = async (tx: Sql, task: NewTask): Promise<void> => {
    if (await insertTask(tx, queue, traced(task), backlogs.isFull(task.agent.project_id)))
      tx.afterCommit(() => bus.notify('jobs'))
  }
  const cancel = async (tx: Sql, task_id: string, request: CancelRequest): Promise<CancelOutcome> => {
    const { result, published, interrupts } = await cancelTask(tx, queue, task_id, request)
    tx.afterCommit(() => {
      publish(published)
      for (const id of interrupts) bus.notify('cancel', id)
    })
    return result
  }
  const delegations = openDelegations({
    sql,
    queue,
    log,
    enqueue,
    afterAnswer,
    async cancelOrphan(task_id) {
      const reason = 'The task that delegated it has ended.'
      await sql.begin((tx) => cancel(tx, task_id, { reason, mode: 'graceful', user_id: 'system' }))
    },
  })
  let isReady = false
  const ready = Promise.all([queue.ready, bus.ready, maintenance.ready]).then(() => {
    if (works) worker.start()
    isReady = true
  })
  ready.catch((error: unknown) =>
    log.error({ err: error }, 'the engine could not be started; this process accepts no tasks'),
  )

  const continueTasks = async (tx: Sql, agent_id: string): Promise<void> => {
    await dispatchDeferred(tx, queue, agent_id)
    tx.afterCommit(() => {
      bus.notify('jobs')
      bus.notify('agent', agent_id)
      onFreed([agentLimitKey(agent_id)])
    })
  }

  return {
    ready,
    isReady: () => isReady,
    worker_id,
    runningTasks: () => worker.running,
    hub,
    projects,
    enqueue,
    create: (task) => creation.create(traced(task)),
    mayShare: (task) => creation.mayShare(task),
    createAll: (tx, tasks) => creation.createAll(tx, tasks.map(traced)),
    dispatchDeferred: continueTasks,
    agentsMade: (sql, agent_ids) =>
      sql.afterCommit(() => {
        for (const agent_id of agent_ids) bus.notify('agent', agent_id)
      }),
    async deferTasks(tx, agent_id, reason) {
      await relabelDeferred(tx, agent_id, reason)
      tx.afterCommit(() => {
        bus.notify(reason === 'agent_stopped' ? 'stop' : 'agent', agent_id)
        onFreed([agentLimitKey(agent_id)])
      })
    },
    async cancelTasks(tx, agent_id) {
      const published = await cancelAll(tx, queue, agent_id)
      tx.afterCommit(() => {
        publish(published)
        bus.notify('agent', agent_id)
        maintenance.purge()
      })
    },
    cancel,
    async resolveApproval(tx, approval_id, resolution) {
      afterAnswer(tx, await resolveApproval(tx, queue, approval_id, resolution))
    },
    async sendMessage(tx, task_id, message) {
      const { result, notice } = await sendMessage(tx, queue, task_id, message)
      if (notice) afterAnswer(tx, notice)
      return result
    },
    async answerToolCalls(tx, task_id, answers) {
      afterAnswer(tx, await answerToolCalls(tx, queue, task_id, answers))
    },
    toolCalls,
    bus,
    work: remote.work,
    budgetsChanged: (tx) => tx.afterCommit(() => budgets.look()),
    credentialsChanged: (tx) => tx.afterCommit(() => credentials.look()),
    isSilent: () => maintenance.isSilent(),
    closeStreams() {
      hub.close()
      toolCalls.close()
      remote.close()
      projects.close()
    },
    async release() {
      await ready.catch(() => {})
      await worker.stop()
    },
    async stop() {
      await ready.catch(() => {})
      hub.close()
      toolCalls.close()
      remote.close()
      projects.close()
      await worker.stop()
      await delegations.stop()
      await maintenance.stop()
      await dispatcher.stop()
      await budgets.stop()
      await credentials.stop()
      await bus.close()
      await queue.close()
    },
  }
}

/** Wraps the hub so that all published events also go to `onTaskEvents`. */
function subscriptionsOf(hub: Hub, onTaskEvents: (events: readonly TaskEvent[]) => void): Hub {
  const publish: Hub['publish'] = (task_id, events, row) => {
    hub.publish(task_id, events, row)
    onTaskEvents(events)
  }
  return { ...hub, publish }
}

/** Decrypts the environment once per claim. Undefined if it was stored under another secret key: the task fails. */
function environmentOf(
  secrets: Secrets,
  log: Logger,
  agent_id: string,
  environment: Buffer | null,
): Record<string, string> | undefined {
  try {
    return readEnvironment(secrets, agent_id, environment)
  } catch (error) {
    log.warn({ err: error, agent_id }, 'the environment variables of an agent could not be decrypted; its task fails')
    return undefined
  }
}

/** Reads what a run needs beyond its task's row from the database, without network calls. */
async function prepareRun(run: Run, { sql, tools }: { sql: Sql; tools: ToolSource | undefined }): Promise<void> {
  // A journal may be large, so each is read in a separate query and not with those of all claimed tasks.
  if (run.hasJournal) await reload(sql, run)
  run.history = await threadHistory(sql, run.work)
  const { tools: names = [], delegates = [] } = run.work.config
  if (tools && names.length > 0)
    run.toolset = await tools.open({
      project_id: run.project_id,
      agent_id: run.agent_id,
      names,
      environment: run.environment,
    })
  if (delegates.length > 0) run.toolset = await withDelegates(sql, run.toolset, run.project_id, delegates)
  run.toolset = withCallerTools(run.toolset, run.work.caller)
}

async function reload(sql: Sql, run: Run): Promise<void> {
  const ids = [run.claim.task_id]
  run.steps = (await listSteps(sql, ids)).get(run.claim.task_id) ?? []
  run.messages = (await listReadMessages(sql, ids)).get(run.claim.task_id) ?? []
}

/**
 * The instance name, which only one process at a time can have. With the embedded database it is the holder of the data
 * folder's lock. On a shared PostgreSQL, folders and host names do not identify a process, because containers share
 * them, so there each worker is a new instance, and dead ones are found by their presence locks.
 */
function instanceOf({ database_url, data_dir }: EngineOptions['config'], worker_id: string): string {
  return database_url || !data_dir ? worker_id : `${hostname()}:${data_dir}`
}
