import { notFound, Problem } from '#contract/problems.ts'
import { answerConstraints } from '../../platform/constraints.ts'
import type { Sql } from '../../platform/database.ts'
import type { Principal } from '../../http/principal.ts'

/** A project as it is answered (spec 2.1). */
export interface ProjectRow {
  id: number
  name: string
  created_at: string
  updated_at: string
}

/** The number that a path names: `proj_42` or `42`; undefined where it is neither (decision D30). */
export function projectNumber(text: string): number | undefined {
  const digits = /^(?:proj_)?([1-9]\d{0,15})$/.exec(text)?.[1]
  const number = Number(digits)
  return digits !== undefined && Number.isSafeInteger(number) ? number : undefined
}

/** The project of the caller's organization that a path names; another organization's does not exist (D74). */
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

/** 404 for what a path named as a project. */
export function projectNotFound(project_id: string): Problem {
  return notFound('project_not_found', 'project', project_id.slice(0, 100))
}

/** Locks a project for the rest of the transaction, so that what is read stays true; undefined where it is gone. */
export async function lockProject(tx: Sql, id: number): Promise<ProjectRow | undefined> {
  const [row] = await tx<ProjectRow>`
    select id, name, created_at, updated_at from project where id = ${id} for update`
  return row
}

/** Creates a project; of simultaneous creations of one name exactly one wins (decision D31). */
export async function insertProject(sql: Sql, org_id: string, name: string): Promise<ProjectRow> {
  return taken(name, async () => {
    const [row] = await sql<ProjectRow>`
      insert into project (org_id, name) values (${org_id}, ${name}) returning id, name, created_at, updated_at`
    return row!
  })
}

/** Renames a project; undefined where it is gone. `updated_at` always advances. */
export async function renameProject(sql: Sql, id: number, name: string): Promise<ProjectRow | undefined> {
  return taken(name, async () => {
    const [row] = await sql<ProjectRow>`
      update project set name = ${name}, updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${id} returning id, name, created_at, updated_at`
    return row
  })
}

/** Deletes a project that has no agents. Its row is locked first, so that no agent can be created meanwhile. */
export async function deleteEmptyProject(sql: Sql, id: number): Promise<'deleted' | 'not_empty' | 'gone'> {
  const [locked] = await sql`select 1 from project where id = ${id} for update`
  if (!locked) return 'gone'
  const [agent] = await sql`select 1 from agent where project_id = ${id} limit 1`
  if (agent) return 'not_empty'
  await sql`delete from project where id = ${id}`
  return 'deleted'
}

function taken<T>(name: string, statement: () => Promise<T>): Promise<T> {
  return answerConstraints(
    { project_name: () => new Problem('project_name_taken', { field: 'name', value: name }) },
    statement,
  )
}

/** What `GET /api/v1/projects` selects by; every member is validated. */
export interface ProjectFilter {
  org_id: string
  search?: string | undefined
  created_after?: string | undefined
  created_before?: string | undefined
  updated_after?: string | undefined
  updated_before?: string | undefined
  sort: 'name' | 'created_at' | 'updated_at'
  order: 'asc' | 'desc'
  limit: number
  offset: number
}

/**
 * A page of projects and how many there are; ties are broken by number. A part of a name is found by its groups of three letters,
 * where PostgreSQL has the extension (`project_name_parts`); a shorter one has none.
 */
export async function listProjects(
  sql: Sql,
  filter: ProjectFilter,
): Promise<{ projects: { id: number; name: string }[]; total: number }> {
  const { fragment } = sql
  const conditions = [fragment`org_id = ${filter.org_id}`]
  if (filter.search !== undefined) {
    const name = filter.search.length < indexedLengthMin ? fragment`(name || '')` : fragment`name`
    conditions.push(fragment`${name} ilike ${likePattern(filter.search)} escape '\\'`)
  }
  if (filter.created_after) conditions.push(fragment`created_at >= ${filter.created_after}::timestamptz`)
  if (filter.created_before) conditions.push(fragment`created_at < ${filter.created_before}::timestamptz`)
  if (filter.updated_after) conditions.push(fragment`updated_at >= ${filter.updated_after}::timestamptz`)
  if (filter.updated_before) conditions.push(fragment`updated_at < ${filter.updated_before}::timestamptz`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from project where ${where}`)
  if (count!.total <= filter.offset) return { projects: [], total: count!.total }
  const projects = await sql.run<{ id: number; name: string }>(fragment`
    select id, name from project where ${where}
    order by ${orderings(sql)[`${filter.sort} ${filter.order}`]} limit ${filter.limit} offset ${filter.offset}`)
  return { projects, total: count!.total }
}

/** Characters of a search from which on an index can find it. */
const indexedLengthMin = 3

/** A pattern of `like` for text that contains `search`: `%` and `_` in it are themselves (decision D32). */
export function likePattern(search: string): string {
  return `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`
}

function orderings({
  fragment,
}: Sql): Record<`${ProjectFilter['sort']} ${ProjectFilter['order']}`, ReturnType<Sql['fragment']>> {
  return {
    'name asc': fragment`name, id`,
    'name desc': fragment`name desc, id desc`,
    'created_at asc': fragment`created_at, id`,
    'created_at desc': fragment`created_at desc, id desc`,
    'updated_at asc': fragment`updated_at, id`,
    'updated_at desc': fragment`updated_at desc, id desc`,
  }
}
