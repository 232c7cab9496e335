import assert from 'node:assert/strict'
import { pino } from 'pino'
import type { ModelPrice } from '#contract/models/model-prices.ts'
import type { ModelSource } from '../src/engine/models/model.ts'
import type { NewTask } from '../src/engine/commands/new-task.ts'
import { makePrices } from '../src/engine/budgets/prices.ts'
import { startEngine } from '../src/engine/start.ts'
import { makeSandboxes } from '../src/engine/tools/sandbox/sandbox.ts'
import { makeTools } from '../src/engine/tools/tools.ts'
import { openDatabase, type Sql } from '../src/platform/postgres/database.ts'
import { makeEgress } from '../src/platform/egress/safe-fetch.ts'
import { makeSecrets } from '../src/platform/crypto/secrets.ts'
import { insertTestAgent, newTestTask } from './fixtures.ts'
import { eventually, makeTestDatabase } from './harness.ts'

/** A task as its row shows it. */
export interface TaskNow {
  status: string
  error: { code: string; retryable: boolean } | null
  output: { content: string; data: unknown } | null
  wait: { reason: string; until: string } | null
}

/** The engine with its tools on a new database, without HTTP in front. */
export interface EngineUnderTest {
  sql: Sql
  enqueue(task: NewTask): Promise<void>
  /** Creates an agent with this configuration, and a task of it. */
  give(config: object, input: string): Promise<string>
  read(id: string): Promise<TaskNow>
  /** The task once it has ended. */
  ended(id: string): Promise<TaskNow>
  steps(
    id: string,
  ): Promise<{ type: string; status: string; attempt: number; failures: number; name: string; output: any }[]>
  events(id: string): Promise<{ type: string; data: any }[]>
  stop(): Promise<void>
}

/** A call is tried three times without long waits, unless the agent is set otherwise. */
const retry = { max_attempts: 3, initial_delay_seconds: 0.02, max_delay_seconds: 0.04 }
const ends = ['completed', 'failed', 'canceled', 'expired']

/** `own` are prices beyond the built-in list. */
export async function startEngineUnderTest(
  models: ModelSource,
  own: ReadonlyMap<string, ModelPrice> = new Map(),
): Promise<EngineUnderTest> {
  const test = await makeTestDatabase()
  const database = openDatabase({ connection: test.connection })
  const { sql } = database
  const log = pino({ level: 'silent' })
  const secrets = makeSecrets('a secret key for tests, 32 characters')
  const tools = makeTools({ sql, secrets, egress: makeEgress(), log, sandboxes: makeSandboxes(log) })
  const config = { worker_slots: 32, tokens_per_hour: 1e9 }
  const prices = makePrices({ own, elsewhere: [] })
  const engine = await startEngine({ database, log, models, prices, tools, secrets, config })
  await engine.ready

  const read: EngineUnderTest['read'] = async (id) => {
    const [row] = await sql<TaskNow>`select status, error, output, wait from task where id = ${id}`
    return row ?? assert.fail(`no task ${id}`)
  }
  return {
    sql,
    read,
    enqueue: (task) => sql.begin((tx) => engine.enqueue(tx, task)),
    async give(more, input) {
      const agent = await insertTestAgent(sql, { retry, tools: ['current_time'], ...more })
      const task = newTestTask(agent, input)
      await sql.begin((tx) => engine.enqueue(tx, task))
      return task.id
    },
    ended: (id) =>
      eventually(async () => {
        const now = await read(id)
        return ends.includes(now.status) && now
      }, 20_000),
    steps: (id) =>
      sql`select type, status, attempt, failures, name, output from task_step where task_id = ${id} order by index` as never,
    events: (id) => sql`select type, data from task_event where task_id = ${id} order by sequence` as never,
    async stop() {
      await engine.stop()
      await database.close()
      await test.drop()
    },
  }
}
