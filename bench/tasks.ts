import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import type { Engine } from '../server/src/engine/engine.ts'
import { makeModels } from '../server/src/engine/models/models.ts'
import type { NewTask } from '../server/src/engine/commands/new-task.ts'
import { startEngine } from '../server/src/engine/start.ts'
import { makeSandboxes } from '../server/src/engine/tools/sandbox/sandbox.ts'
import { makeTools } from '../server/src/engine/tools/tools.ts'
import { openDatabase } from '../server/src/platform/postgres/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../server/src/platform/postgres/migrate.ts'
import { makeEgress } from '../server/src/platform/egress/safe-fetch.ts'
import { makeSecrets } from '../server/src/platform/crypto/secrets.ts'
import { insertTestAgent, newTestTask } from '../server/test/fixtures.ts'
import { startFakeModelServer } from '../server/test/fake-models/fake-model-server.ts'
import { costSettings, costsBetween, readCosts } from './costs.ts'
import { machine, load, percentile, summarize } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * How many crash-safe tasks an engine does a second, how soon one is picked up, and how much later than by calling the
 * model directly its first token comes. One process, the embedded PostgreSQL with its ordinary durability, everything
 * on one machine; in turns with durable one-row inserts by the same driver, to which every figure is given as a ratio.
 *
 *     node bench/tasks.ts --tasks 3000 --callers 16 --rounds 3
 */
const values = readOptions({
  tasks: { type: 'string', default: '3000' },
  callers: { type: 'string', default: '16' },
  slots: { type: 'string', default: '32' },
  agents: { type: 'string', default: '20' },
  rounds: { type: 'string', default: '3' },
  latencies: { type: 'string', default: '300' },
  /** Only `rates` or `latencies`. */
  only: { type: 'string', default: '' },
  /** What each kind costs in processor time, and which statements it takes: slows everything down a little. */
  costs: { type: 'boolean', default: false },
})
const [tasks, callers, slots, rounds] = [values.tasks, values.callers, values.slots, values.rounds].map(Number) as [
  number,
  number,
  number,
  number,
]
const toolScript = JSON.stringify([
  { tool_calls: [{ name: 'current_time', arguments: {} }] },
  { text: 'It is {{tool_result}}.' },
])

/** Of tasks that were created and have not ended. */
const ends = new Set<Promise<void>>()
const log = pino({ level: 'warn' })
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log, settings: values.costs ? costSettings : {} })
const database = openDatabase({ connection: postgres.connection })
const { sql } = database
const provider = await startFakeModelServer()
const models = makeModels({
  providers: [{ name: 'fake', base_url: provider.base_url }],
  default_model: 'builtin/echo',
})
const secrets = makeSecrets('a secret key for benches, 32 characters')
let engine: Engine | undefined
try {
  await migrate(sql)
  await sql.script('create table raw_insert (id bigint generated always as identity primary key, body jsonb not null)')
  console.log(`${tasks} tasks, ${callers} callers, ${slots} slots, ${rounds} rounds. Before: ${machine()}.\n`)
  engine = await startEngine({
    database,
    log,
    models,
    tools: makeTools({ sql, secrets, egress: makeEgress(), log, sandboxes: makeSandboxes(log) }),
    secrets,
    config: { worker_slots: slots, tokens_per_hour: Infinity },
  })
  await engine.ready
  if (isWanted('rates')) await measureRates(engine)
  if (isWanted('latencies')) await measureLatencies(engine, Number(values.latencies))
  console.log(`\nAfter: load ${load().toFixed(2)}, ${Math.round(process.memoryUsage.rss() / 1e6)} MB RSS.`)
} finally {
  await engine?.stop()
  await database.close()
  await postgres.stop()
  await provider.close()
  await rm(folder, { recursive: true, force: true })
}

function isWanted(part: string): boolean {
  return part.includes(values.only)
}

async function measureRates(engine: Engine): Promise<void> {
  const echo = await makeAgents({ model: 'builtin/echo' })
  const tool = await makeAgents({ model: 'builtin/script', system_prompt: toolScript, tools: ['current_time'] })
  const kinds: Record<string, (i: number) => Promise<unknown>> = {
    'Raw inserts': insertRow,
    'Tasks of one model call, created': (i) => create(engine, echo, i),
    'Tasks of one model call, each waited for': async (i) => (await create(engine, echo, i)).ended,
    'Tasks of a tool round, created': (i) => create(engine, tool, i),
    'Tasks of a tool round, each waited for': async (i) => (await create(engine, tool, i)).ended,
  }
  // As on a database that has been in use for a minute: connections are there, code is compiled, and tables are analysed.
  for (const once of Object.values(kinds)) await repeat(once, tasks / 4)
  await Promise.all(ends)
  await sql.script('analyze')
  if (values.costs) return measureCosts(kinds)
  const rates = new Map(Object.keys(kinds).map((name) => [name, [] as number[]]))
  for (let round = 0; round < rounds; round++) {
    for (const [name, once] of Object.entries(kinds)) {
      const began = performance.now()
      await repeat(once)
      await Promise.all(ends)
      rates.get(name)!.push((tasks / (performance.now() - began)) * 1000)
    }
  }
  const raw = summarize(rates.get('Raw inserts')!).median
  console.log('| Per second, done | least | median | most | to raw inserts |\n|---|---|---|---|---|')
  for (const [name, all] of rates) {
    const { min, median, max } = summarize(all)
    console.log(`| ${name} | ${[min, median, max].map(Math.round).join(' | ')} | ${(median / raw).toFixed(2)} |`)
  }
}

async function measureCosts(kinds: Record<string, (i: number) => Promise<unknown>>): Promise<void> {
  for (const [name, once] of Object.entries(kinds)) {
    const before = await readCosts(postgres)
    await repeat(once)
    await Promise.all(ends)
    console.log(`\n## ${name}, each\n\n${costsBetween(before, await readCosts(postgres), tasks)}`)
  }
}

/** One at a time on an idle worker. Kinds take turns, so that a slow moment of the disk affects all of them. */
async function measureLatencies(engine: Engine, count: number): Promise<void> {
  const [echo] = await makeAgents({ model: 'builtin/echo' })
  const [fake] = await makeAgents({ model: 'fake/some-model' })
  const all = new Map<string, number[]>()
  const note = (name: string, ms: number): void => void all.set(name, [...(all.get(name) ?? []), ms])
  for (let i = 0; i < count; i++) {
    const began = performance.now()
    await insertRow(i)
    note('Raw insert', performance.now() - began)

    const picked = await create(engine, [echo!], i)
    await picked.ended
    note('Creation committed', picked.created_at - picked.began_at)
    note('Picked up after the commit', picked.started_at - picked.created_at)
    note('Ended after the commit', picked.ended_at - picked.created_at)

    note('First token of the model itself', await firstTokenDirectly())
    const streamed = await create(engine, [fake!], i)
    await streamed.ended
    note('First token of a task, from its creation', streamed.first_token_at - streamed.began_at)
  }
  const raw = percentile(all.get('Raw insert')!, 0.5)
  console.log('\n| Milliseconds | p50 | p99 | p50 to raw insert |\n|---|---|---|---|')
  for (const [name, ms] of all) {
    const [p50, p99] = [percentile(ms, 0.5), percentile(ms, 0.99)]
    console.log(`| ${name} | ${p50.toFixed(2)} | ${p99.toFixed(2)} | ${(p50 / raw).toFixed(2)} |`)
  }
  const over = [0.5, 0.99].map(
    (share) =>
      percentile(all.get('First token of a task, from its creation')!, share) -
      percentile(all.get('First token of the model itself')!, share),
  )
  console.log(`\nFirst token later than directly: ${over.map((ms) => ms.toFixed(2)).join(' / ')} ms (p50 / p99).`)
}

async function insertRow(i: number): Promise<void> {
  await sql`insert into raw_insert (body) values (${JSON.stringify({ i, input: 'hello there', text: 'x'.repeat(200) })})`
}

/** `once` as often as there are tasks, by as many callers as there are, each beginning when it has ended. */
async function repeat(once: (i: number) => Promise<unknown>, count = tasks): Promise<void> {
  let next = 0
  const call = async (): Promise<void> => {
    while (next < count) await once(next++)
  }
  await Promise.all(Array.from({ length: callers }, call))
}

async function makeAgents(config: Record<string, unknown>): Promise<NewTask['agent'][]> {
  return Promise.all(Array.from({ length: Number(values.agents) }, () => insertTestAgent(sql, config)))
}

interface Watched {
  began_at: number
  created_at: number
  started_at: number
  first_token_at: number
  ended_at: number
  /** Resolves with the task's last event. */
  ended: Promise<void>
}

/** Creates a task as the API does and watches it; resolves when the creation is committed. */
async function create(engine: Engine, agents: NewTask['agent'][], i: number): Promise<Watched> {
  const task = newTestTask(agents[i % agents.length]!, 'hello there')
  const end = Promise.withResolvers<void>()
  const at: Watched = {
    began_at: performance.now(),
    created_at: 0,
    started_at: 0,
    first_token_at: 0,
    ended_at: 0,
    ended: end.promise,
  }
  ends.add(end.promise)
  const leave = engine.hub.watch(task.id, {
    seen: () => 0,
    look: () => {},
    delta: () => void (at.first_token_at ||= performance.now()),
    events: (events) => {
      const last = events.at(-1)!.type
      if (events.some(({ type }) => type === 'task.started')) at.started_at = performance.now()
      if (!isTerminalEvent(last)) return
      if (last !== 'task.completed') throw new Error(`a task ended with ${last}`)
      at.ended_at = performance.now()
      leave()
      ends.delete(end.promise)
      end.resolve()
    },
  })
  await engine.create(task)
  at.created_at = performance.now()
  return at
}

async function firstTokenDirectly(): Promise<number> {
  const { model, name } = models.resolve('fake/some-model')
  const began = performance.now()
  let first = 0
  await model.call({
    model: name,
    system_prompt: undefined,
    temperature: undefined,
    max_tokens: undefined,
    messages: [{ role: 'user', content: 'hello there' }],
    tools: [],
    signal: AbortSignal.timeout(10_000),
    on_delta: () => void (first ||= performance.now()),
  })
  return first - began
}
