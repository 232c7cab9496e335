import { notFound, Problem } from '#contract/core/problems.ts'
import { answerConstraints } from '../../platform/postgres/constraints.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Principal } from '../../http/access/principal.ts'

/** A project (spec 2.1). */
export interface ProjectRow {
  id: number
  name: string
  created_at: string
  updated_at: string
}

/** The project number of a path: `proj_42` or `42`; undefined for anything else (decision D30). */
export function projectNumber(text: string): number | undefined {
  const digits = /^(?:proj_)?([1-9]\d{0,15})$/.exec(text)?.[1]
  const number = Number(digits)
  return digits !== undefined && Number.isSafeInteger(number) ? number : undefined
}

/** The project of a path in the caller's organization; throws 404 otherwise (decision D74). */
export async function requireProject(
  sql: Sql,
  project_id: string,
  principal: Pick<Principal, 'org_id'>,
): Promise<ProjectRow> {
  const id = projectNumber(project_id)
  const [row] =
    id === undefined
      ? []
      : await sql<ProjectRow>`select id, name, created_at, updated_at from project where id = ${id} and org_id = ${principal.org_id}`
  if (!row) throw projectNotFound(project_id)
  return row
}

/** The 404 for a project id of a path. */
export function projectNotFound(project_id: string): Problem {
  return notFound('project_not_found', 'project', project_id.slice(0, 100))
}

/** Locks a project until the transaction ends; undefined if it does not exist. */
export async function lockProject(tx: Sql, id: number): Promise<ProjectRow | undefined> {
  const [row] = await tx<ProjectRow>`
    select id, name, created_at, updated_at from project where id = ${id} for update`
  return row
}

/** Creates a project; of concurrent creations with one name exactly one succeeds (decision D31). */
export async function insertProject(sql: Sql, org_id: string, name: string): Promise<ProjectRow> {
  return taken(name, async () => {
    const [row] = await sql<ProjectRow>`
      insert into project (org_id, name) values (${org_id}, ${name}) returning id, name, created_at, updated_at`
    return row!
  })
}

/** Renames a project; undefined if it does not exist. `updated_at` always increases. */
export async function renameProject(sql: Sql, id: number, name: string): Promise<ProjectRow | undefined> {
  return taken(name, async () => {
    const [row] = await sql<ProjectRow>`
      update project set name = ${name}, updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${id} returning id, name, created_at, updated_at`
    return row
  })
}

/**
 * Deletes a locked project if it has no agents; returns whether it did. The lock prevents that an agent is created
 * concurrently.
 */
export async function deleteEmptyProject(tx: Sql, id: number): Promise<boolean> {
  const [agent] = await tx`select 1 from agent where project_id = ${id} limit 1`
  if (agent) return false
  await tx`delete from project where id = ${id}`
  return true
}

function taken<T>(name: string, statement: () => Promise<T>): Promise<T> {
  return answerConstraints(
    { project_name: () => new Problem('project_name_taken', { field: 'name', value: name }) },
    statement,
  )
}

/** Merges the project counts of all connections; returns the number of removed rows. */
export async function foldProjectCounts(sql: Sql): Promise<number> {
  return sql.begin(async (tx) => {
    // Only one transaction may write the rows of backend 0. Locked rows are skipped until the next run.
    const [{ alone } = { alone: false }] = await tx<{ alone: boolean }>`
      select pg_try_advisory_xact_lock(hashtext('cadre project counts')) as alone`
    if (!alone) return 0
    const [folded] = await tx<{ rows: number }>`
      with idle as materialized (
        select org_id, backend from project_count where backend <> 0 limit ${foldBatch} for update skip locked
      ), gone as (
        delete from project_count c using idle i where c.org_id = i.org_id and c.backend = i.backend returning c.*
      ), kept as (
        insert into project_count as c (org_id, backend, projects) select org_id, 0, sum(projects) from gone group by org_id
        on conflict (org_id, backend) do update set projects = c.projects + excluded.projects
      )
      select count(*) as rows from gone`
    return folded!.rows
  })
}

const foldBatch = 1000

/** A `like` pattern for texts that contain `search`, with `%` and `_` escaped (decision D32). */
export function likePattern(search: string): string {
  return `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`
}
