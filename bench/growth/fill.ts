import type { Sql } from '../../server/src/platform/postgres/database.ts'

/** How many rows of each kind a project and its first agent are given. */
export interface Sizes {
  agents: number
  logs: number
  tasks: number
}

/** Logs and tasks are spread over so many days before now. */
export const days = 29
/** Rows that one statement makes, so that its progress is seen. */
const batch = 250_000
const fill_ms = 60 * 60_000

/** Fills a project: its agents, and logs and tasks of the first of them, whose id it gives. */
export async function fillProject(sql: Sql, project: number, sizes: Sizes): Promise<string> {
  await fillAgents(sql, project, sizes.agents)
  const [agent] = await sql<{ id: string }>`select id from agent where project_id = ${project} order by id limit 1`
  await fillLogs(sql, agent!.id, sizes.logs)
  await fillTasks(sql, project, agent!.id, sizes.tasks)
  return agent!.id
}

/**
 * Runs `fill` without the indexes of tables that are made for reading alone, and makes them anew after it: so it takes
 * minutes instead of hours.
 */
export async function withoutIndexes(sql: Sql, tables: readonly string[], fill: () => Promise<void>): Promise<void> {
  const indexes = await sql<{ name: string; definition: string }>`
    select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
    where indrelid = any(${[...tables]}::regclass[]) and not indisprimary and not exists (
      select from pg_constraint where conindid = indexrelid) order by 1`
  for (const { name } of indexes) await sql.script(`drop index ${name}`, fill_ms)
  await fill()
  const began = performance.now()
  for (const { definition } of indexes) await sql.script(definition.replace(' ON ONLY ', ' ON '), fill_ms)
  console.log(`${indexes.length} indexes in ${seconds(began)} s.`)
}

/** Projects beside those that are measured: one name in ten has a word, one in 100,000 another. */
export async function fillProjects(sql: Sql, count: number): Promise<void> {
  await inBatches(
    'projects',
    count,
    (first, last) => sql`
    insert into project (org_id, name)
    select org_id, case when n % 100000 = 77 then 'a rare-word ' when n % 10 = 3 then 'a common-word ' else 'name-' end || n
    from (select org_id from project limit 1) o, generate_series(${first}::int, ${last}::int) n`,
  )
}

async function fillAgents(sql: Sql, project: number, count: number): Promise<void> {
  await inBatches(
    'agents',
    count,
    (first, last) => sql`
    insert into agent (id, project_id, name, status, config, metadata, created_by, token_subject, created_at, updated_at)
    select left(id_floor('agent', now()), 13) || lpad((${project}::bigint % 1000)::text, 3, '0') || lpad(n::text, 16, '0'), ${project},
      'agent ' || md5(n::text), case when n % 1000 = 0 then 'error' when n % 3 = 0 then 'paused' else 'running' end,
      jsonb_build_object('model', case when n % 500 = 0 then 'builtin/scripted' else 'builtin/echo' end, 'tools', '[]'::jsonb),
      jsonb_build_object('tags', jsonb_build_array('team-' || n % 1000, 'all')), 'user_x', 'user_x', now() - make_interval(secs => n), now()
    from generate_series(${first}::int, ${last}::int) n`,
  )
}

async function fillLogs(sql: Sql, agent: string, count: number): Promise<void> {
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
    select 'log_' || lpad(n::text, 26, '0'), ${agent}, now() - make_interval(secs => (${count}::int - n) * (${days} * 86400.0 / ${count}::int)),
      (array['debug','info','info','info','info','info','info','info','warn','error'])[1 + n % 10], 'An entry of a bench, ' || n
    from generate_series(${first}::int, ${last}::int) n`,
  )
}

/** Ended tasks, one in fifty failed, that took between a second and two minutes; in the order of their creation. */
async function fillTasks(sql: Sql, project: number, agent: string, count: number): Promise<void> {
  await inBatches(
    'tasks',
    count,
    (first, last) => sql`
    with hour as materialized (
      select at, left(id_floor('task', at), 15) as floor
      from generate_series(date_trunc('hour', now()) - make_interval(days => ${days + 1}), now(), '1 hour') at
    ), made as (
      select n, now() - interval '5 minutes' - make_interval(secs => (${count}::int - n) * (${days} * 86400.0 / ${count}::int)) as at,
        make_interval(secs => exp((n % 1000) / 200.0)) as took from generate_series(${first}::int, ${last}::int) n
    )
    insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, created_at, started_at, finished_at, updated_at)
    select floor || lpad(n::text, 8, '0') || lpad((${project}::bigint % 1000)::text, 8, '0'), ${project}, ${agent}, 1,
      case when n % 50 = 0 then 'failed' else 'completed' end, '"x"', 1, '{}', 'user_x', made.at, made.at, made.at + took, made.at + took
    from made join hour on hour.at = date_trunc('hour', made.at)`,
  )
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

/** Seconds since a moment of `performance.now()`. */
export function seconds(began: number): string {
  return ((performance.now() - began) / 1000).toFixed(1)
}
