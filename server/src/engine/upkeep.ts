import type { Logger } from 'pino'
import type { Sql } from '../platform/database.ts'
import {
  buryWorker,
  giveBackTasks,
  heartbeat,
  heartbeat_ms,
  listDeadWorkers,
  listLostTasks,
  registerWorker,
  type WorkerIdentity,
} from './leases.ts'
import { dispatchMore } from './parking.ts'
import type { Queue } from './queue.ts'
import { expireTasks, forceCancels, listAgentsWithDue, listAgentsWithParked, purgeRemovedAgents } from './sweeps.ts'
import type { PublishedEvents } from './task-changes.ts'
import { addUsage } from './usage.queries.ts'
import type { UsageMeter } from './usage-meter.ts'
import type { Worker } from './worker.ts'

export interface UpkeepOptions {
  sql: Sql
  queue: Queue
  worker: Worker
  me: WorkerIdentity
  meter: UsageMeter
  log: Logger
  publish: (published: readonly PublishedEvents[]) => void
  /** Jobs were put or given back into the queue. */
  wake: () => void
}

/** What a worker does beside running tasks: says that it lives, and looks after what others left behind. */
export interface Upkeep {
  /** Resolves when the worker is registered and the tasks of its predecessor are given back. */
  ready: Promise<void>
  /** No worker was seen for a while (decision D102). */
  isSilent(): boolean
  /** Begins the purge of removed agents now. */
  purge(): void
  stop(): Promise<void>
}

const silent_ms = 60_000
const due_ms = 5000
const parked_ms = 60_000
const purge_ms = 60_000
const usage_ms = 5000

export function startUpkeep(options: UpkeepOptions): Upkeep {
  const { sql, queue, worker, me, meter, log, publish, wake } = options
  const chores: Chore[] = []
  let seen_at = performance.now()

  const repeat = (name: string, every_ms: number, work: () => Promise<unknown>): Chore => {
    const chore = makeChore(name, every_ms, work, log)
    chores.push(chore)
    return chore
  }
  const beat = async (): Promise<void> => {
    const { registered, slots } = await heartbeat(sql, me.id)
    seen_at = performance.now()
    worker.setSlotsOfAll(slots)
    // Taken for dead by others, who gave its tasks back: it goes on under the same name, with what it still holds.
    if (!registered) await registerWorker(sql, me)
    await worker.withTasks(async (except) => {
      worker.interruptLost(await listLostTasks(sql, me.id, except))
      const { count } = await giveBackTasks(sql, queue, me.id, { crashed: true, except })
      if (count > 0) wake()
    })
  }
  const bury = async (starting = false): Promise<void> => {
    for (const id of await listDeadWorkers(sql, me, { starting })) {
      const given = await buryWorker(sql, queue, id)
      log.info({ worker: id, tasks: given }, 'a worker is dead; its tasks were given back')
      if (given > 0) wake()
    }
  }
  const dispatch = (list: (sql: Sql) => Promise<string[]>) => async (): Promise<void> => {
    for (const agent_id of await list(sql)) await dispatchMore(sql, queue, agent_id)
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

  const ready = (async (): Promise<void> => {
    await registerWorker(sql, me)
    await queue.ready
    await bury(true)
    repeat('heartbeat', heartbeat_ms, beat)
    repeat('dead workers', heartbeat_ms, () => bury())
    repeat('expired tasks', heartbeat_ms, async () => publish(await expireTasks(sql, queue)))
    repeat('late cancellations', heartbeat_ms, async () => publish(await forceCancels(sql, queue)))
    repeat('due tasks', due_ms, dispatch(listAgentsWithDue))
    repeat('parked tasks', parked_ms, dispatch(listAgentsWithParked)).now()
  })()
  const purging = repeat('purge', purge_ms, () => purgeRemovedAgents(sql))
  const sampling = repeat('usage', usage_ms, sampleUsage)

  return {
    ready,
    isSilent: () => performance.now() - seen_at > silent_ms,
    purge: () => purging.now(),
    async stop() {
      await ready.catch(() => {})
      await Promise.all(chores.map((chore) => chore.stop()))
      await sampling.last()
      await sql`delete from worker where id = ${me.id} and not exists (select from task where worker_id = ${me.id} and status = 'running')`.catch(
        () => {},
      )
    },
  }
}

interface Chore {
  /** Does it now, unless it is being done. */
  now(): void
  /** Does it once more, after `stop`. */
  last(): Promise<void>
  stop(): Promise<void>
}

/** Something done again and again, never twice at a time. Failing is logged and tried again next time. */
function makeChore(name: string, every_ms: number, work: () => Promise<unknown>, log: Logger): Chore {
  let current: Promise<void> | undefined
  let stopped = false
  const run = async (): Promise<void> => {
    try {
      await work()
    } catch (error) {
      log.warn({ err: error, chore: name }, 'a chore of the engine failed; it will be done again')
    }
  }
  const now = (): void => {
    if (!stopped) current ??= run().finally(() => (current = undefined))
  }
  const timer = setInterval(now, every_ms)
  timer.unref()
  return {
    now,
    last: run,
    async stop() {
      stopped = true
      clearInterval(timer)
      await current
    },
  }
}
