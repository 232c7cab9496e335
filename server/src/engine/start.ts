import { hostname } from 'node:os'
import type { Logger } from 'pino'
import { openBus } from '../events/streams-bus.ts'
import { openHub } from '../events/streams-hub.ts'
import type { Database } from '../platform/database.ts'
import { newId } from '../platform/ids.ts'
import type { Secrets } from '../platform/secrets.ts'
import { cancelTask } from './cancel.ts'
import type { Engine } from './engine.ts'
import { readEnvironment } from './environment.ts'
import { Journal } from './journal.ts'
import { presenceLock } from './leases.ts'
import type { ModelSource } from './model-call.ts'
import { insertTask } from './new-task.ts'
import { cancelAll, dispatchBatch, dispatchMore, relabelParked } from './parking.ts'
import { openQueue } from './queue.ts'
import type { PublishedEvents } from './task-changes.ts'
import { startUpkeep } from './upkeep.ts'
import { UsageMeter } from './usage-meter.ts'
import { Worker } from './worker.ts'

export interface EngineOptions {
  database: Database
  log: Logger
  models: ModelSource
  secrets: Secrets
  config: {
    /** Tasks that this process runs at the same time. */
    worker_slots: number
    /** Model tokens a credential may use an hour (decision D90); not limited while rate limits are off. */
    tokens_per_hour: number
    rate_limits?: boolean
    /** Undefined with the embedded database: then one process at a time works for the data folder. */
    database_url?: string | undefined
    data_dir?: string
  }
  /** Chance, 0 to 1; held still by tests. */
  random?: () => number
}

/**
 * Starts the engine of this process: its queue, its worker, and what watches over both. Resolves at once; `ready` tells
 * when tasks are accepted, so that the service can listen meanwhile.
 */
export async function startEngine({
  database,
  log,
  models,
  secrets,
  config,
  random = Math.random,
}: EngineOptions): Promise<Engine> {
  const { sql } = database
  const worker_id = newId('worker')
  const queue = openQueue({ database, log })
  const bus = openBus({ database, log, presence: presenceLock(worker_id) })
  const hub = openHub({ sql, bus, log })
  const meter = new UsageMeter()
  const publish = (published: readonly PublishedEvents[]): void => {
    for (const { task_id, events } of published) hub.publish(task_id, events)
  }
  /** Dispatches what is parked although its agent may work; until nothing of it is left. */
  const dispatchRest = (agent_id: string): void => {
    const rest = async (): Promise<void> => {
      for (let more = true; more;) {
        const batch = await dispatchMore(sql, queue, agent_id)
        if (batch.sent > 0) bus.tell('jobs')
        more = batch.more
      }
    }
    // Should this process die before, the upkeep of any other finds what is left.
    rest().catch((error: unknown) => log.warn({ err: error, agent_id }, 'parked tasks remain for now'))
  }
  const onParked = (agent_ids: readonly string[]): void => agent_ids.forEach(dispatchRest)
  const tokens_per_hour = config.rate_limits === false ? Infinity : config.tokens_per_hour
  const worker = new Worker({
    id: worker_id,
    slots: config.worker_slots,
    sql,
    queue,
    bus,
    meter,
    log,
    publish,
    onParked,
    context: { journal: new Journal({ sql, queue, hub, onParked }), models, hub, tokens_per_hour, random },
    secretsOf: (agent_id, environment) => environmentValues(secrets, log, agent_id, environment),
  })
  const upkeep = startUpkeep({
    sql,
    queue,
    worker,
    me: { id: worker_id, instance: instanceOf(config, worker_id), slots: config.worker_slots },
    meter,
    log,
    publish,
    wake: () => bus.tell('jobs'),
  })
  let isReady = false
  const ready = Promise.all([queue.ready, bus.ready, upkeep.ready]).then(() => {
    worker.start()
    isReady = true
  })
  ready.catch((error: unknown) => log.error({ err: error }, 'the engine could not be started'))

  return {
    ready,
    isReady: () => isReady,
    hub,
    async enqueue(tx, task) {
      if (await insertTask(tx, queue, task)) tx.afterCommit(() => bus.tell('jobs'))
    },
    async dispatchParked(tx, agent_id) {
      const { more } = await dispatchBatch(tx, queue, agent_id)
      tx.afterCommit(() => {
        bus.tell('jobs')
        if (more) dispatchRest(agent_id)
      })
    },
    async parkTasks(tx, agent_id, reason) {
      if (reason === 'agent_stopped') await relabelParked(tx, agent_id)
      tx.afterCommit(() => bus.tell('agent', agent_id))
    },
    async cancelTasks(tx, agent_id) {
      const published = await cancelAll(tx, queue, agent_id)
      tx.afterCommit(() => {
        publish(published)
        bus.tell('agent', agent_id)
        upkeep.purge()
      })
    },
    async cancel(tx, task_id, request) {
      const { result, published } = await cancelTask(tx, queue, task_id, request)
      tx.afterCommit(() => {
        publish(published)
        if (result.outcome === 'requested') bus.tell('cancel', task_id)
      })
      return result
    },
    isSilent: () => upkeep.isSilent(),
    closeStreams: () => hub.close(),
    async stop() {
      await ready.catch(() => {})
      hub.close()
      await worker.stop()
      await upkeep.stop()
      await bus.close()
      await queue.close()
    },
  }
}

/** Read once a claim: what must not appear in logs. A task can run without, so a wrong key only leaves it out. */
function environmentValues(secrets: Secrets, log: Logger, agent_id: string, environment: Buffer | null): string[] {
  try {
    return Object.values(readEnvironment(secrets, agent_id, environment))
  } catch (error) {
    log.warn({ err: error, agent_id }, 'the environment variables of an agent cannot be read')
    return []
  }
}

/**
 * What only one process at a time can be: whoever holds the lock of the data folder with the embedded database. On a
 * shared PostgreSQL folders and host names tell nothing (containers have the same ones), so there every worker is an
 * instance of its own, and the dead are told by their locks.
 */
function instanceOf({ database_url, data_dir }: EngineOptions['config'], worker_id: string): string {
  return database_url || !data_dir ? worker_id : `${hostname()}:${data_dir}`
}
