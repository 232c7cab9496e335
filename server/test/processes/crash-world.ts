import type pg from 'pg'
import type { NewTask } from '../../src/engine/commands/new-task.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Model } from '../../src/engine/models/model.ts'
import type { ToolSource } from '../../src/engine/tools/tool.ts'
import type { Sql } from '../../src/platform/postgres/database.ts'
import { eventually, makeTestDatabase } from '../harness.ts'
import {
  openEngine,
  startEngineProcess,
  witnessModel,
  witnessTable,
  type EngineProcess,
  type EngineProcessOptions,
} from './engine-process.ts'

/**
 * Number of concurrent transactions that create tasks: a busy machine cannot open more connections before the pool
 * times out.
 */
const createdAtOnce = 8

/** A database on which this process creates tasks, and whose workers are separate processes that a test kills. */
export interface CrashWorld {
  connection: pg.ClientConfig
  sql: Sql
  /** The engine that creates tasks here, without a slot. */
  engine: Engine
  /** Every started worker, newest last. */
  workers: readonly EngineProcess[]
  /** Starts a worker. Default: 8 slots, and one model call of 10 ms per task. */
  startWorker(options?: Partial<EngineProcessOptions>): Promise<EngineProcess>
  /** Creates tasks, and returns their ids. */
  create(...tasks: NewTask[]): Promise<string[]>
  /** Resolves once all of these tasks are finished. */
  finished(ids: string[], timeout_ms?: number): Promise<unknown>
  /** Kills the remaining workers: a failed test may leave some, which must not take tasks of the next test. */
  killWorkers(): Promise<void>
  /** Kills the remaining workers and drops the database. */
  close(): Promise<void>
}

export async function openCrashWorld(
  model: (sql: Sql) => Model = (sql) => witnessModel(sql, { calls: 1, call_ms: 0 }),
  tools?: (sql: Sql) => ToolSource,
): Promise<CrashWorld> {
  const { connection, drop } = await makeTestDatabase()
  const here = await openEngine({ connection, slots: 0, data_dir: 'api', model, ...(tools ? { tools } : {}) })
  const { sql, engine } = here
  await sql.script(witnessTable)
  const workers: EngineProcess[] = []
  const isAlive = ({ child }: EngineProcess): boolean => child.exitCode === null && child.signalCode === null
  const killWorkers = async (): Promise<void> => {
    await Promise.all(workers.filter(isAlive).map((worker) => worker.kill()))
  }
  return {
    connection,
    sql,
    engine,
    workers,
    async startWorker(options) {
      const worker = await startEngineProcess({
        connection,
        slots: 8,
        data_dir: 'worker',
        calls: 1,
        call_ms: 10,
        ...options,
      })
      workers.push(worker)
      return worker
    },
    async create(...tasks) {
      for (let from = 0; from < tasks.length; from += createdAtOnce)
        await Promise.all(
          tasks.slice(from, from + createdAtOnce).map((task) => sql.begin((tx) => engine.enqueue(tx, task))),
        )
      return tasks.map(({ id }) => id)
    },
    finished: (ids, timeout_ms) =>
      eventually(async () => {
        const [row] = await sql<{ open: number }>`
          select count(*) as open from task where id = any(${ids}) and finished_at is null`
        return row!.open === 0
      }, timeout_ms),
    killWorkers,
    async close() {
      await killWorkers()
      await here.close()
      await drop()
    },
  }
}
