import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import type { NewTask } from '../server/src/engine/commands/new-task.ts'
import { makeModels } from '../server/src/engine/models/models.ts'
import { startEngine } from '../server/src/engine/start.ts'
import { openDatabase, type Sql } from '../server/src/platform/postgres/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../server/src/platform/postgres/migrate.ts'
import { makeSecrets } from '../server/src/platform/crypto/secrets.ts'
import { insertTestAgent, newTestTask } from '../server/test/fixtures.ts'
import { readOptions } from './parts/options.ts'

/**
 * How fast tasks of `builtin/echo` are picked up and done: one process, the embedded PostgreSQL with its ordinary
 * durability, everything on one machine.
 *
 *     node bench/engine.ts --tasks 3000 --slots 32 --agents 20
 */
const values = readOptions({
  tasks: { type: 'string', default: '3000' },
  slots: { type: 'string', default: '32' },
  agents: { type: 'string', default: '20' },
  callers: { type: 'string', default: '32' },
})
const [tasks, slots, callers] = [Number(values.tasks), Number(values.slots), Number(values.callers)]
const log = pino({ level: 'warn' })
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log })
const database = openDatabase({ connection: postgres.connection })
const { sql } = database
await migrate(sql)
const agents: NewTask['agent'][] = []
for (let i = 0; i < Number(values.agents); i++) agents.push(await insertTestAgent(sql, { model: 'builtin/echo' }))

console.log(`${tasks} tasks, ${slots} slots, ${agents.length} agents, ${callers} callers`)
await measurePickUp(300)
await measureThroughput()
await measureDrain()
await database.close()
await postgres.stop()
await rm(folder, { recursive: true, force: true })

function open(worker_slots: number) {
  const models = makeModels({ default_model: 'builtin/echo' })
  const secrets = makeSecrets('a secret key for benches, 32 characters')
  return startEngine({ database, log, models, secrets, config: { worker_slots, tokens_per_hour: Infinity } })
}

/** One task at a time on an idle worker, from the commit of its creation. */
async function measurePickUp(count: number): Promise<void> {
  const engine = await open(slots)
  await engine.ready
  const started: number[] = []
  const done: number[] = []
  for (let i = 0; i < count; i++) {
    const task = make(i)
    const end = Promise.withResolvers<void>()
    let created = 0
    engine.hub.watch(task.id, {
      seen: () => 0,
      look: () => {},
      events: (events) => {
        if (events.some(({ type }) => type === 'task.started')) started.push(performance.now() - created)
        if (!events.some(({ type }) => type === 'task.completed')) return
        done.push(performance.now() - created)
        end.resolve()
      },
    })
    await sql.begin(async (tx) => {
      await engine.enqueue(tx, task)
      tx.afterCommit(() => (created = performance.now()))
    })
    await end.promise
  }
  console.log(`picked up after ${spread(started)} ms, done after ${spread(done)} ms (p50 / p99)`)
  await engine.stop()
}

/** Created and done at the same time. */
async function measureThroughput(): Promise<void> {
  const engine = await open(slots)
  await engine.ready
  const began = performance.now()
  await create(engine.enqueue)
  const created = performance.now()
  await allDone(sql)
  console.log(`created ${rate(created - began)}/s, created and done ${rate(performance.now() - began)}/s`)
  await engine.stop()
}

/** A backlog, from the start of a worker. */
async function measureDrain(): Promise<void> {
  const api = await open(0)
  await api.ready
  await create(api.enqueue)
  await api.stop()
  const began = performance.now()
  const engine = await open(slots)
  await allDone(sql)
  console.log(
    `backlog drained ${rate(performance.now() - began)}/s, ${Math.round(process.memoryUsage.rss() / 1e6)} MB RSS`,
  )
  await engine.stop()
}

async function create(enqueue: (tx: Sql, task: NewTask) => Promise<void>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (next < tasks) {
        const task = make(next++)
        await sql.begin((tx) => enqueue(tx, task))
      }
    }),
  )
}

async function allDone(all: Sql): Promise<void> {
  for (;;) {
    const [open] = await all`select 1 from task where finished_at is null limit 1`
    if (!open) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

function make(i: number): NewTask {
  return newTestTask(agents[i % agents.length]!, 'hello there')
}

function rate(ms: number): number {
  return Math.round((tasks / ms) * 1000)
}

function spread(all: number[]): string {
  const sorted = all.toSorted((a, b) => a - b)
  return [0.5, 0.99].map((share) => sorted[Math.floor(sorted.length * share)]!.toFixed(1)).join(' / ')
}
