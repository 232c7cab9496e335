import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { databaseEnvironment, startProcess } from '../e2e/process.ts'
import { buildLateIndexes } from '../server/src/maintenance/late-indexes.ts'
import { openDatabase, type Database } from '../server/src/platform/postgres/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../server/src/platform/postgres/migrate.ts'
import { load, machine, percentile } from './figures.ts'
import { fillProject, fillProjects, seconds, withoutIndexes } from './growth/fill.ts'
import { comparisons } from './growth/reads.ts'
import { readOptions } from './parts/options.ts'

/**
 * How long reads take when tables have grown, each as a client has it, one at a time, beside the same read of a small project:
 * agents with filters, sorts, totals and deep offsets; logs by level and time; metrics at every interval; search among names.
 * The tables are filled by SQL.
 *
 *     node bench/growth.ts --agents 1000000 --logs 10000000 --tasks 5000000 --projects 1000000 --reads 200
 *
 * With `--data FOLDER` the filled database is kept there, and a later run with it measures without filling; `--only WORD,…`
 * measures the reads whose name has one of them, and `--fill` only fills.
 */
const values = readOptions({
  agents: { type: 'string', default: '1000000' },
  logs: { type: 'string', default: '10000000' },
  tasks: { type: 'string', default: '5000000' },
  projects: { type: 'string', default: '1000000' },
  reads: { type: 'string', default: '200' },
  data: { type: 'string' },
  only: { type: 'string', default: '' },
  fill: { type: 'boolean', default: false },
})
/** Agents of the small project, entries and tasks of the small agent. */
const few = 1000
const fill_ms = 60 * 60_000
const path_ms = 4000
/** What is lost in a crash is filled again. */
const fillSettings = { fsync: 'off', full_page_writes: 'off', max_wal_size: '8GB', maintenance_work_mem: '512MB' }
const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }

interface Filled {
  sizes: { agents: number; logs: number; tasks: number; projects: number }
  large: { project: number; agent: string }
  small: { project: number; agent: string }
}

const folder = values.data ?? (await mkdtemp(join(tmpdir(), 'cadre-bench-')))
await mkdir(folder, { recursive: true })
const isDone = join(folder, 'filled.json')
try {
  const filled = await readFile(isDone, 'utf8').then(
    (text) => JSON.parse(text) as Filled,
    async () => {
      const made = await inDatabase(fillSettings, fill)
      await inDatabase({}, ({ sql }) => sql.script('vacuum analyze', fill_ms))
      await writeFile(isDone, JSON.stringify(made))
      return made
    },
  )
  if (!values.fill) await inDatabase({}, (database, environment) => measure(database, environment, filled))
} finally {
  if (values.data === undefined) await rm(folder, { recursive: true, force: true })
}

async function inDatabase<T>(
  settings: Record<string, string>,
  work: (database: Database, environment: Record<string, string>) => Promise<T>,
): Promise<T> {
  const postgres = await startEmbeddedPostgres({ data_dir: folder, log: pino({ level: 'warn' }), settings })
  // Statements that fill tables take far longer than those of a service.
  const database = openDatabase({ connection: postgres.connection, timeoutMultiplier: 500 })
  try {
    return await work(database, {
      ...databaseEnvironment(postgres.connection),
      CADRE_DATA_DIR: folder,
      CADRE_ADMIN_API_KEY: key,
      CADRE_RATE_LIMITS_SCALE: '1000000',
    })
  } finally {
    await database.close()
    await postgres.stop()
  }
}

async function fill({ sql }: Database, environment: Record<string, string>): Promise<Filled> {
  const service = await startProcess(environment)
  const newProject = async (name: string): Promise<number> => {
    const answer = await fetch(`${service.url}/api/v1/projects`, {
      method: 'POST',
      headers,
      body: `{"name":"${name}"}`,
    })
    return ((await answer.json()) as { id: number }).id
  }
  const [large, small] = [await newProject('large'), await newProject('small')]
  await service.end()
  const sizes = {
    agents: Number(values.agents),
    logs: Number(values.logs),
    tasks: Number(values.tasks),
    projects: Number(values.projects),
  }
  const agents = { large: '', small: '' }
  await withoutIndexes(sql, ['agent', 'agent_log', 'task', 'project'], async () => {
    agents.large = await fillProject(sql, large, sizes)
    agents.small = await fillProject(sql, small, { agents: few, logs: few, tasks: few })
    await fillProjects(sql, sizes.projects)
  })
  return {
    sizes,
    large: { project: large, agent: agents.large },
    small: { project: small, agent: agents.small },
  }
}

/** Indexes and sums that a service would have made meanwhile. */
async function settle(database: Database): Promise<void> {
  const { sql } = database
  await migrate(sql)
  while (await buildLateIndexes(sql, { database })) continue
  const began = performance.now()
  for (const roll of ['roll_up_tasks', 'roll_up_task_totals', 'roll_up_logs'])
    while ((await sql.query(`select ${roll}() as more`)).rows[0].more) continue
  console.log(`Summing up took ${seconds(began)} s.`)
}

async function measure(database: Database, environment: Record<string, string>, filled: Filled): Promise<void> {
  await settle(database)
  const service = await startProcess(environment)
  try {
    console.log(`${new Date().toISOString()}, ${machine()}.`)
    console.log(
      '\n| Milliseconds | rows | p50 | p99 | small: p50 | p50 to small | bytes |\n|---|---|---|---|---|---|---|',
    )
    const { sizes, large, small } = filled
    const only = values.only.split(',')
    for (const { name, rows, path, smallPath = path } of comparisons(sizes)) {
      if (!only.some((word) => name.includes(word))) continue
      // In turns, so that both meet the same machine.
      const [measured, other] = await times(
        service.url,
        [path(large.project, large.agent), smallPath(small.project, small.agent)],
        Number(values.reads),
      )
      console.log(
        `| ${[
          name,
          rows.toLocaleString('en'),
          figure(measured!, 0.5),
          figure(measured!, 0.99),
          figure(other!, 0.5),
          (percentile(measured!.ms, 0.5) / percentile(other!.ms, 0.5)).toFixed(2),
          measured!.bytes,
        ].join(' | ')} |`,
      )
    }
    console.log(`\nAfter: load ${load().toFixed(2)}.`)
  } finally {
    await service.end()
  }
}

interface Times {
  ms: number[]
  bytes: number
  isLate: boolean
}

function figure({ ms, isLate }: Times, share: number): string {
  return isLate ? 'not in time' : percentile(ms, share).toFixed(2)
}

/** Milliseconds of so many reads of each path, one at a time and in turns; at most `path_ms` of each. */
async function times(url: string, paths: readonly string[], count: number): Promise<Times[]> {
  const all = paths.map((): Times => ({ ms: [], bytes: 0, isLate: false }))
  const end = performance.now() + paths.length * path_ms
  for (let n = -5; n < count && (n < 5 || performance.now() < end); n++) {
    for (const [at, path] of paths.entries()) {
      const one = all[at]!
      if (one.isLate) continue
      const began = performance.now()
      const answer = await fetch(url + path, { headers })
      const text = await answer.text()
      if (n >= 0) one.ms.push(performance.now() - began)
      one.isLate = answer.status >= 500
      if (!one.isLate) assert.equal(answer.status, 200, text)
      one.bytes = text.length
    }
  }
  return all
}
