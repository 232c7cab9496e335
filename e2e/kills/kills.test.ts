import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { agentMoves } from '#contract/agent-lifecycle.ts'
import { taskMoves } from '#contract/task-lifecycle.ts'
import { openDatabase, type Sql } from '../../server/src/platform/database.ts'
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../../server/src/platform/embedded-postgres.ts'
import { migrate } from '../../server/src/platform/migrate.ts'
import { makeChance, testSeed, type Chance } from '../../server/test/chance.ts'
import { eventually, sender, type Send } from '../../server/test/harness.ts'
import { checkEffects } from '../../server/test/history/check-effects.ts'
import { checkMoves } from '../../server/test/history/check-moves.ts'
import { checkSequences } from '../../server/test/history/check-sequences.ts'
import { checkTurns } from '../../server/test/history/check-turns.ts'
import { checkCancels, checkSet } from '../../server/test/history/check-set.ts'
import { temporaryFolder } from '../process.ts'
import { assemble, type Cast } from './cast.ts'
import {
  internalErrors,
  journaledCalls,
  leftovers,
  listEvents,
  listTasks,
  readMoves,
  readTurns,
  recordMoves,
} from './evidence.ts'
import { startLoad, type Load } from './load.ts'
import { startWorker } from './worker.ts'
import { startWorld, witnessTools, type World } from './world.ts'

/** `CADRE_TEST_KILLS` for longer runs; of them a tenth are whole services, and a few PostgreSQL itself. */
const kills = Number(process.env['CADRE_TEST_KILLS'] ?? 100)
const pause_ms = { least: 20, most: 400 }
const serviceShare = 0.1
const postgresShare = 0.03
/** After the last kill everything must have ended in this time. */
const quiet_ms = 60_000

const api_key = 'cadre_00112233445566778899aabbccddeeff'
/** Workers keep what was compiled of them: a start costs a fraction. */
const compiled = join(tmpdir(), 'cadre-test-compiled')
const secret_key = 'a secret that all processes share, and nobody else'

test(`${kills} kills lose no task, repeat no step whose effect may have happened, and break no watcher's sequence`, async (t) => {
  const chance = makeChance(testSeed())
  t.diagnostic(`CADRE_TEST_SEED=${chance.seed} CADRE_TEST_KILLS=${kills}`)
  const stage = await setStage(t, chance)
  const { cast, load, world, sql, postgres } = stage

  const began = performance.now()
  for (const victim of chance.shuffled(victims())) {
    await delay(chance.between(pause_ms.least, pause_ms.most))
    if (victim === 'postgres') process.kill(postgres.pid, 'SIGKILL')
    else await cast.kill(victim)
  }
  t.diagnostic(`killed in ${seconds(began)} s`)

  world.heal()
  await load.stop()
  await cast.whole()
  const healed = performance.now()
  for (const agent of stage.agents) await load.ask('POST', `/agents/${agent}/restart`)
  await eventually(async () => (await load.answerApprovals()) === 0 && (await isQuiet(sql)), quiet_ms)
  t.diagnostic(`quiet after ${seconds(healed)} s`)

  const tasks = await listTasks(load)
  const watches = await load.watches(10_000)
  const journaled = await journaledCalls(sql)
  const [moves, turns] = [await readMoves(sql, 'task'), await readTurns(sql)]
  t.diagnostic(`tasks: ${tally(tasks.map(({ status }) => status))}; ${watches.length} watchers`)
  t.diagnostic(`${turns.size} tasks in threads or with keys; taken over: ${await takenOver(sql)}`)
  t.diagnostic(`operations: ${tally(load.history.operations.map(({ op, outcome }) => `${op} ${outcome}`))}`)
  t.diagnostic(
    `calls made again: ${repeated(world)}; ${journaled.filter(({ repeatsApproved }) => repeatsApproved > 0).length} allowed by a person`,
  )
  const wrong = [
    ...checkSet(load.history.of('create'), tasks),
    ...checkCancels(load.history.of('cancel'), tasks),
    ...checkEffects(world.effects, journaled),
    ...checkSequences([...watches, ...(await listEvents(load, tasks))]),
    ...checkMoves(moves, taskMoves, ['queued']),
    ...checkTurns(moves, turns),
    ...checkMoves(await readMoves(sql, 'agent'), agentMoves, ['creating']),
    ...(await internalErrors(sql)),
    ...(await leftovers(sql)),
  ]
  assert.deepEqual(wrong.slice(0, 20), [], `${wrong.length} are wrong; CADRE_TEST_SEED=${chance.seed}`)
  // A run that met nothing of what it is about would prove nothing.
  assert.ok(tasks.filter(({ status }) => status === 'completed').length > kills)
  assert.ok((await takenOver(sql)) > 0)
})

interface Stage {
  cast: Cast
  load: Load
  world: World
  sql: Sql
  postgres: EmbeddedPostgres
  agents: string[]
}

/** PostgreSQL, two services and three workers on it, what they work with, and callers who give them work. */
async function setStage(t: TestContext, chance: Chance): Promise<Stage> {
  const ends: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const folder = await temporaryFolder()
  ends.push(folder.remove)
  // A killed process loses nothing that it has written; only a machine that stops does, and none does here.
  const settings = { fsync: 'off' }
  const postgres = await startEmbeddedPostgres({ data_dir: folder.path, log: pino({ level: 'silent' }), settings })
  ends.push(() => postgres.stop())
  const database = openDatabase({ connection: postgres.connection })
  ends.push(() => database.close())
  await migrate(database.sql)
  await database.sql.script(recordMoves)
  const world = await startWorld(chance.fork())
  ends.push(() => world.close())
  const cast = await assemble(chance.fork(), starts(postgres, folder.path, world))
  ends.push(() => cast.close())
  const { project, agents, threads } = await makeAgents(sender(cast.url()!, api_key), world)
  const load = startLoad({ cast, chance: chance.fork(), api_key, project, agents, threads, callers: 10 })
  return { cast, load, world, sql: database.sql, postgres, agents }
}

function starts({ connection }: EmbeddedPostgres, folder: string, { model }: World): Parameters<typeof assemble>[1] {
  const { host, database, user } = connection
  const model_url = model.base_url
  const service = {
    DATABASE_URL: `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host!)}`,
    CADRE_SECRET_KEY: secret_key,
    CADRE_DATA_DIR: folder,
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_RATE_LIMITS: 'off',
    CADRE_EGRESS_ALLOW: 'loopback',
    CADRE_PROVIDER_FAKE_BASE_URL: model_url,
    CADRE_WORKER_SLOTS: '1',
    CADRE_LOG_LEVEL: 'fatal',
  }
  const worker = (data_dir: string) => () =>
    startWorker({ connection, slots: 8, data_dir, secret_key, model_url }, { NODE_COMPILE_CACHE: compiled })
  return { services: [service, service], workers: ['one', 'two', 'three'].map(worker) }
}

/** Agents with tools, of which one takes a few tasks at a time, and a thread of each. */
async function makeAgents(
  send: Send,
  { witness_url }: World,
): Promise<{ project: string; agents: string[]; threads: Map<string, string> }> {
  const made = async (path: string, body: unknown): Promise<{ id: string }> => {
    const reply = await send('POST', path, { body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }
  const project = `/api/v1/projects/${(await made('/api/v1/projects', { name: 'kills' })).id}`
  for (const [name, { safety, method }] of Object.entries(witnessTools))
    await made(`${project}/tools`, {
      name,
      description: `A tool that is ${safety}.`,
      kind: 'http',
      safety,
      parameters: { type: 'object', properties: { call: { type: 'string' } }, required: ['call'] },
      http: { method, url: `${witness_url}/${name}` },
    })
  const tools = [...Object.keys(witnessTools), 'wait']
  const agents = await Promise.all(
    [{}, {}, {}, { max_concurrent_tasks: 6 }].map((more, i) =>
      made(`${project}/agents`, { name: `agent ${i}`, config: { model: 'fake/model', tools, ...more } }),
    ),
  )
  const threads = agents.map(async ({ id }) => [id, (await made(`${project}/threads`, { agent_id: id })).id] as const)
  return { project, agents: agents.map(({ id }) => id), threads: new Map(await Promise.all(threads)) }
}

function victims(): ('worker' | 'service' | 'postgres')[] {
  const [services, servers] = [Math.ceil(kills * serviceShare), Math.round(kills * postgresShare)]
  return Array.from({ length: kills }, (_, i) =>
    i < servers ? 'postgres' : i < servers + services ? 'service' : 'worker',
  )
}

async function isQuiet(sql: Sql): Promise<boolean> {
  const [open] = await sql`select 1 from task where finished_at is null limit 1`
  return !open
}

/** How often tasks were taken over from workers that were killed under them. */
async function takenOver(sql: Sql): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select count(*)::int as count from task_event where type = 'task.retrying' and data->>'reason' = 'worker_lost'`
  return row!.count
}

/** How often calls reached the witness again, by their safety. */
function repeated({ effects }: World): string {
  const bySafety = Map.groupBy(effects, ({ safety }) => safety)
  return [...bySafety]
    .map(([safety, all]) => `${all.length - new Set(all.map(({ call }) => call)).size} of ${all.length} ${safety}`)
    .join(', ')
}

function tally(words: readonly string[]): string {
  return [...Map.groupBy(words, (word) => word)].map(([word, all]) => `${all.length} ${word}`).join(', ')
}

function seconds(began: number): string {
  return ((performance.now() - began) / 1000).toFixed(1)
}
