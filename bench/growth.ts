import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { pino } from 'pino'
import { databaseEnvironment, startProcess } from '../e2e/process.ts'
import { openDatabase } from '../server/src/platform/database.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres.ts'
import { load, machine, percentile } from './figures.ts'

/**
 * How long reads take when tables have grown, each as a client has it, one at a time, beside the same read of a small project:
 * agents with filters, sorts, totals and deep offsets; logs by level and time; metrics at every interval; search among names.
 * The tables are filled by SQL.
 *
 *     node bench/growth.ts --agents 1000000 --logs 10000000 --tasks 5000000 --projects 1000000 --reads 200
 */
const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '1000000' },
    logs: { type: 'string', default: '10000000' },
    tasks: { type: 'string', default: '5000000' },
    projects: { type: 'string', default: '1000000' },
    reads: { type: 'string', default: '200' },
  },
})
const [agents, logs, tasks, projects, reads] = [
  values.agents,
  values.logs,
  values.tasks,
  values.projects,
  values.reads,
].map(Number) as [number, number, number, number, number]
/** Agents of the small project, entries and tasks of the small agent. */
const few = 1000
/** Logs and tasks are spread over so many days before now. */
const days = 30
/** Rows that one statement makes, so that its progress is seen. */
const batch = 250_000
const fill_ms = 30 * 60_000

const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({
  data_dir: folder,
  log: pino({ level: 'warn' }),
  settings: { max_wal_size: '8GB' },
})
// Statements that fill tables take far longer than those of a service.
const database = openDatabase({ connection: postgres.connection, patience: 500 })
const { sql } = database
const environment = {
  ...databaseEnvironment(postgres.connection),
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '1000000',
}
let service = await startProcess(environment)
try {
  console.log(`Before: ${machine()}.`)
  const [large, small] = [await newProject('large'), await newProject('small')]
  await fillAgents(large, agents)
  await fillAgents(small, few)
  const [big, little] = [await agentOf(large), await agentOf(small)]
  await fillLogs(big, logs)
  await fillLogs(little, few)
  await fillTasks(large, big, tasks)
  await fillTasks(small, little, few)
  await fillProjects(projects)
  const began = performance.now()
  while ((await sql<{ more: boolean }>`select roll_up_tasks() as more`)[0]!.more) continue
  console.log(`Summing up all tasks took ${seconds(began)} s.`)
  await sql.script('vacuum analyze', fill_ms)
  // Its connections planned their statements while the tables were small.
  await service.end()
  service = await startProcess(environment)

  console.log(
    '\n| Milliseconds | rows | p50 | p99 | small: p50 | p50 to small | bytes |\n|---|---|---|---|---|---|---|',
  )
  const list = (query: string) => (project: number) => `/api/v1/projects/${project}/agents?limit=20${query}`
  for (const query of ['', '&sort=created_at', '&sort=name', '&sort=-name', '&status=error', '&status=error&sort=name'])
    await compare(`Agents, first page${query.replaceAll('&', ' ')}`, agents, list(query)(large), list(query)(small))
  for (const share of [0.01, 0.5, 1]) {
    const offset = Math.max(0, Math.floor(agents * share) - 20)
    await compare(
      `Agents, from ${offset.toLocaleString('en')}`,
      agents,
      list(`&offset=${offset}`)(large),
      list('')(small),
      5,
    )
  }
  await compare(
    'An agent with its statistics',
    tasks,
    `/api/v1/projects/${large}/agents/${big}`,
    `/api/v1/projects/${small}/agents/${little}`,
  )
  const of = (project: number, agent: string, rest: string) => `/api/v1/projects/${project}/agents/${agent}/${rest}`
  const [from, to] = [ago(20.3), ago(3.7)]
  for (const query of [
    '',
    '&level=error',
    `&start_time=${from}&end_time=${to}`,
    `&level=warn&start_time=${from}&end_time=${to}`,
  ])
    await compare(
      `Logs${query.replaceAll(/_time=[^&]*/g, '').replaceAll('&', ' ')}`,
      logs,
      of(large, big, `logs?limit=20${query}`),
      of(small, little, `logs?limit=20${query}`),
      5,
    )
  for (const [interval, length] of [
    ['1m', 1],
    ['5m', 5],
    ['15m', 15],
    ['1h', 29],
    ['1d', 29],
  ] as const) {
    const query = `metrics?interval=${interval}&start_time=${ago(length + 0.3)}&end_time=${ago(0.3)}`
    await compare(`Metrics, ${interval} over ${length} days`, tasks, of(large, big, query), of(small, little, query))
  }
  await compare(
    'Tasks of an agent, first page',
    tasks,
    of(large, big, 'tasks?limit=20'),
    of(small, little, 'tasks?limit=20'),
    5,
  )
  for (const search of ['name-4711', 'rare-word'])
    await compare(
      `Search of projects: ${search}`,
      projects,
      `/api/v1/projects?search=${search}`,
      '/api/v1/projects?limit=1',
      5,
    )
  console.log(`\nAfter: load ${load().toFixed(2)}.`)
} finally {
  await service.end()
  await database.close()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

async function compare(name: string, rows: number, path: string, smallPath: string, count = reads): Promise<void> {
  const measured = await time(path, count)
  const other = await time(smallPath, Math.min(count, 50))
  const cells =
    measured && other
      ? [
          percentile(measured.ms, 0.5).toFixed(2),
          percentile(measured.ms, 0.99).toFixed(2),
          percentile(other.ms, 0.5).toFixed(2),
          (percentile(measured.ms, 0.5) / percentile(other.ms, 0.5)).toFixed(2),
          measured.bytes,
        ]
      : ['not in time', '', '', '', '']
  console.log(`| ${[name, rows.toLocaleString('en'), ...cells].join(' | ')} |`)
}

/** Milliseconds of so many reads, one at a time; undefined where the service gave up (a statement has 4 s). */
async function time(path: string, count: number): Promise<{ ms: number[]; bytes: number } | undefined> {
  const ms: number[] = []
  let bytes = 0
  for (let n = -3; n < count; n++) {
    const began = performance.now()
    const answer = await fetch(service.url + path, { headers })
    const text = await answer.text()
    if (n >= 0) ms.push(performance.now() - began)
    if (answer.status >= 500) return undefined
    assert.equal(answer.status, 200, text)
    bytes = text.length
  }
  return { ms, bytes }
}

async function newProject(name: string): Promise<number> {
  const answer = await fetch(`${service.url}/api/v1/projects`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name }),
  })
  return ((await answer.json()) as { id: number }).id
}

async function agentOf(project: number): Promise<string> {
  const [row] = await sql<{ id: string }>`select id from agent where project_id = ${project} order by id limit 1`
  return row!.id
}

async function inBatches(
  what: string,
  count: number,
  make: (first: number, last: number) => Promise<unknown>,
): Promise<void> {
  const began = performance.now()
  for (let first = 1; first <= count; first += batch) await make(first, Math.min(count, first + batch - 1))
  console.log(`${count.toLocaleString('en')} ${what} in ${seconds(began)} s.`)
}

async function fillAgents(project: number, count: number): Promise<void> {
  await inBatches(
    'agents',
    count,
    (first, last) => sql`
    insert into agent (id, project_id, name, status, config, created_by, token_subject, created_at, updated_at)
    select left(id_floor('agent', now()), 13) || lpad((${project}::bigint % 1000)::text, 3, '0') || lpad(n::text, 16, '0'), ${project},
      'agent ' || md5(n::text), case when n % 1000 = 0 then 'error' when n % 3 = 0 then 'paused' else 'running' end,
      '{"model":"builtin/echo","tools":[]}', 'user_x', 'user_x', now() - make_interval(secs => n), now()
    from generate_series(${first}::int, ${last}::int) n`,
  )
}

async function fillLogs(agent: string, count: number): Promise<void> {
  await sql.script(`do $$ declare at date; begin
    for at in select generate_series(now() at time zone 'UTC' - interval '${days} days', now() at time zone 'UTC', '1 day')::date loop
      execute format('create table if not exists agent_log_%s partition of agent_log for values from (%L) to (%L)', to_char(at, 'YYYYMMDD'),
        at::timestamp at time zone 'UTC', (at + 1)::timestamp at time zone 'UTC');
    end loop; end $$`)
  await inBatches(
    'entries of a log',
    count,
    (first, last) => sql`
    insert into agent_log (id, agent_id, timestamp, level, message)
    select 'log_' || lpad(n::text, 26, '0'), ${agent}, now() - make_interval(secs => n * (${days} * 86400.0 / ${count}::int)),
      (array['debug','info','info','info','info','info','info','info','warn','error'])[1 + n % 10], 'An entry of a bench, ' || n
    from generate_series(${first}::int, ${last}::int) n`,
  )
}

async function fillTasks(project: number, agent: string, count: number): Promise<void> {
  await inBatches(
    'tasks',
    count,
    (first, last) => sql`
    insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, created_at, started_at, finished_at, updated_at)
    select left(id_floor('task', at), 15) || lpad(n::text, 8, '0') || lpad((${project}::bigint % 1000)::text, 8, '0'), ${project}, ${agent}, 1,
      case when n % 50 = 0 then 'failed' else 'completed' end, '"x"', 1, '{}', 'user_x', at - interval '1 second' - took, at - took, at, at
    from (select n, now() - make_interval(secs => n * (${days} * 86400.0 / ${count}::int)) as at,
      make_interval(secs => exp((n % 1000) / 200.0)) as took from generate_series(${first}::int, ${last}::int) n) t`,
  )
}

async function fillProjects(count: number): Promise<void> {
  await inBatches(
    'projects',
    count,
    (first, last) => sql`
    insert into project (org_id, name) select org_id, case when n % 100000 = 77 then 'a rare-word ' else 'name-' end || n
    from (select org_id from project limit 1) o, generate_series(${first}::int, ${last}::int) n`,
  )
}

function ago(length_days: number): string {
  return new Date(Date.now() - length_days * 86_400_000).toISOString()
}

function seconds(began: number): string {
  return ((performance.now() - began) / 1000).toFixed(1)
}
