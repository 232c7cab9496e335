import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { openDatabase, type Sql } from '../../server/src/platform/postgres/database.ts'
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '../../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../../server/src/platform/postgres/migrate.ts'
import { databaseUrl } from '../../server/test/postgres.ts'
import { makeRng, testSeed, type Rng } from '../../server/test/rng.ts'
import { sender } from '../../server/test/harness.ts'
import { startProcess, temporaryFolder } from '../process.ts'
import { makeAgents } from '../workload/agents.ts'
import { startCluster } from '../cluster/cluster.ts'
import { recordMoves } from '../checker/history.ts'
import { readHistory, checkHistory, repeated, settle, takenOver, type SystemUnderTest } from '../checker/checker.ts'
import { startLoad } from '../workload/load.ts'
import { sizeOf } from '../../server/test/long-run.ts'
import { startWorker } from '../cluster/worker.ts'
import { startWorld, type World } from '../workload/world.ts'

/** `CADRE_TEST_KILLS` for longer runs; of them a tenth are whole services, and a few PostgreSQL itself. */
const kills = Number(process.env['CADRE_TEST_KILLS'] ?? sizeOf({ short: 2, long: 60 }))
/** `CADRE_TEST_DURABLE=1`: PostgreSQL with fsync on, as in production. */
const isDurable = process.env['CADRE_TEST_DURABLE'] === '1'
/** `CADRE_TEST_FINDING`: a finding that no checker made, to see that findings are printed and the run ends. */
const planted = process.env['CADRE_TEST_FINDING']
const pause_ms = { min: 20, max: 400 }
/** Who give tasks all the time. */
const callers = kills < 10 ? 4 : 10
const serviceShare = 0.1
const postgresShare = 0.03
/** After the last kill a task must end at least this often, until all have. */
const stalled_ms = 60_000
/** Time between two lines of progress: a run without them is stuck. */
const progress_ms = 15_000
/** Workers that are killed beyond that, until one was killed at work; none in a run without kills. */
const moreMax = kills === 0 ? 0 : 20
/** So soon others take over what a killed worker was at: the end of its lease and a look. */
const takeover_ms = 8000
/** How long PostgreSQL may take until it is back and can be killed again. */
const postgresBack_ms = 60_000
/** How long each part may take to stop after the run. */
const end_ms = 30_000

const api_key = 'cadre_00112233445566778899aabbccddeeff'
/** Workers keep what was compiled of them: a start costs a fraction. */
const compiled = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'cadre-test-compiled')
const secret_key = 'a secret key that all processes share'

test(`${kills} kills lose no task, repeat no step whose effect may have happened, and break no watcher's sequence`, async (t) => {
  const rng = makeRng(testSeed())
  // Printed at once: a run that is killed from outside reports no diagnostics.
  console.log(`CADRE_TEST_SEED=${rng.seed} CADRE_TEST_KILLS=${kills}${isDurable ? ' CADRE_TEST_DURABLE=1' : ''}`)
  const environment = await startEnvironment(t, rng)
  const { cluster, load, world, sql, postgres } = environment

  const began = performance.now()
  let done = 0
  const progress = setInterval(() => console.log(`${done} of ${kills} kills in ${seconds(began)} s`), progress_ms)
  t.after(() => clearInterval(progress))
  for (const [nth, victim] of rng.shuffled(victims()).entries()) {
    await delay(rng.between(pause_ms.min, pause_ms.max))
    if (victim === 'postgres') await killPostgres(postgres)
    else await cluster.kill(victim)
    done = nth + 1
  }
  // The few kills of a short run may all meet idle processes, and would prove nothing.
  for (let more = 0; more < moreMax && !(await hasTakenOver(sql)); more++) await cluster.kill('worker')
  console.log(`killed in ${seconds(began)} s`)

  const quiet_s = await settle(environment, stalled_ms)
  console.log(`quiet after ${quiet_s.toFixed(1)} s`)

  const runHistory = await readHistory(environment)
  const { tasks, watches, journaled, turns } = runHistory
  console.log(`tasks: ${tally(tasks.map(({ status }) => status))}; ${watches.length} watchers`)
  console.log(`${turns.size} tasks in threads or with keys; taken over: ${await takenOver(sql)}`)
  console.log(`operations: ${tally(load.history.operations.map(({ op, outcome }) => `${op} ${outcome}`))}`)
  console.log(
    `calls made again: ${repeated(world)}; ${journaled.filter(({ repeatsApproved }) => repeatsApproved > 0).length} allowed by a person`,
  )
  const wrong = [
    ...Object.values(checkHistory(environment, runHistory)).flat(),
    ...(planted === undefined ? [] : [planted]),
  ]
  // Before the hooks, which stop much and could fail too.
  for (const finding of wrong.slice(0, 20)) console.error(`finding: ${finding}`)
  assert.deepEqual(wrong.slice(0, 20), [], `${wrong.length} are wrong; CADRE_TEST_SEED=${rng.seed}`)
  // A run that met nothing of what it is about would prove nothing.
  assert.ok(tasks.filter(({ status }) => status === 'completed').length > kills)
  assert.ok((await takenOver(sql)) > 0)
})

interface Environment extends SystemUnderTest {
  postgres: EmbeddedPostgres
}

/** PostgreSQL, two services and three workers on it, what they work with, and callers who give them work. */
async function startEnvironment(t: TestContext, rng: Rng): Promise<Environment> {
  const ends: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const end of ends.toReversed()) await bounded(end)
  })
  const folder = await temporaryFolder()
  ends.push(folder.remove)
  // A killed process loses nothing that it has written; only a machine that stops does, and none does here.
  const settings = { fsync: isDurable ? 'on' : 'off' }
  const postgres = await startEmbeddedPostgres({ data_dir: folder.path, log: pino({ level: 'silent' }), settings })
  ends.push(() => postgres.stop())
  const database = openDatabase({ connection: postgres.connection })
  ends.push(() => database.close())
  await migrate(database.sql)
  await database.sql.script(recordMoves)
  const world = await startWorld(rng.fork())
  ends.push(() => world.close())
  const cluster = await startCluster(rng.fork(), starts(postgres, folder.path, world))
  ends.push(() => cluster.close())
  const { project, agents, threads } = await makeAgents(sender(cluster.url()!, api_key), world)
  const load = startLoad({ cluster, rng: rng.fork(), api_key, project, agents, threads, callers })
  ends.push(() => load.close())
  return { cluster, load, world, sql: database.sql, postgres, agents }
}

/** Whether a task was taken over, for as long as that may take. */
async function hasTakenOver(sql: Sql): Promise<boolean> {
  for (const until = performance.now() + takeover_ms; performance.now() < until; await delay(100))
    if ((await takenOver(sql).catch(() => 0)) > 0) return true
  return false
}

/** Kills PostgreSQL once it is there: one that was killed before may not be back yet. */
async function killPostgres(postgres: EmbeddedPostgres): Promise<void> {
  for (const until = performance.now() + postgresBack_ms; ;) {
    try {
      process.kill(postgres.pid, 'SIGKILL')
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
      if (performance.now() > until)
        throw new Error(`PostgreSQL was not back ${postgresBack_ms / 1000} s after a kill`, { cause: error })
      await delay(10)
    }
  }
}

/** Stops a part of the run. One that does not stop in time is reported, and the others are stopped all the same. */
async function bounded(end: () => Promise<unknown>): Promise<void> {
  const late = Symbol('late')
  const timeout = new AbortController()
  const result = await Promise.race([
    end().catch((error: unknown) => console.error('A part of the run failed to stop:', error)),
    delay(end_ms, late, { signal: timeout.signal }).catch(() => undefined),
  ])
  timeout.abort()
  if (result === late) console.error(`A part of the run did not stop within ${end_ms / 1000} s.`)
}

function starts(
  { connection }: EmbeddedPostgres,
  folder: string,
  { model }: World,
): Parameters<typeof startCluster>[1] {
  const model_url = model.base_url
  const service = {
    DATABASE_URL: databaseUrl(connection),
    CADRE_SECRET_KEY: secret_key,
    CADRE_DATA_DIR: folder,
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS: 'off',
    CADRE_EGRESS_ALLOW: 'loopback',
    CADRE_PROVIDER_FAKE_BASE_URL: model_url,
    CADRE_WORKER_SLOTS: '1',
    CADRE_LOG_LEVEL: 'fatal',
  }
  const startService = () => startProcess(service)
  const worker = (data_dir: string) => async () => ({
    process: await startWorker(
      { connection, slots: 8, data_dir, secret_key, model_url },
      { NODE_COMPILE_CACHE: compiled },
    ),
  })
  return { services: [startService, startService], workers: ['one', 'two', 'three'].map(worker) }
}

function victims(): ('worker' | 'service' | 'postgres')[] {
  const [services, servers] = [Math.ceil(kills * serviceShare), Math.round(kills * postgresShare)]
  return Array.from({ length: kills }, (_, i) =>
    i < servers ? 'postgres' : i < servers + services ? 'service' : 'worker',
  )
}

function tally(kinds: readonly string[]): string {
  return [...Map.groupBy(kinds, (word) => word)].map(([word, all]) => `${all.length} ${word}`).join(', ')
}

function seconds(began: number): string {
  return ((performance.now() - began) / 1000).toFixed(1)
}
