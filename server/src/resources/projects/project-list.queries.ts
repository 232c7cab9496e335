import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { likePattern } from './projects.queries.ts'

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

/** Characters of a search from which on an index can find it. */
const indexedLengthMin = 3
/** So many projects that a search finds are read once, and counted and sorted as they stand. */
const readOnce = 500
/**
 * So many are counted, and read and sorted as they stand, in the 4 MB that PostgreSQL gives a statement: in the list's order they may
 * all be at its end. Of more the page is looked for in that order: the more there are, the sooner it is found.
 */
const sortedMax = 20_000

/**
 * A page of projects and how many there are, exactly and both of one moment; ties are broken by number. The number of all is kept as
 * they come and go (`project_count`); of those that are narrowed down they are counted. A part of a name is found by its groups of
 * three letters, where PostgreSQL has the extension (`project_name_parts`); a shorter one has none, and reads all names.
 */
export async function listProjects(
  sql: Sql,
  filter: ProjectFilter,
): Promise<{ projects: { id: number; name: string }[]; total: number }> {
  const { fragment } = sql
  const conditions = conditionsOf(sql, filter)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const order = orderings(sql)[`${filter.sort} ${filter.order}`]
  const part = fragment`order by ${order} limit ${filter.limit} offset ${filter.offset}`
  const columns = fragment`id, name, created_at, updated_at`
  const counted = fragment`select count(*) from project where ${where}`
  const stored = fragment`select coalesce(sum(projects), 0)::bigint from project_count where org_id = ${filter.org_id}`
  const total = conditions.length > 1 ? counted : stored
  const statement =
    filter.search === undefined
      ? fragment`
        select heading.total, page.id, page.name from (select (${total}) as total) heading
        left join (select ${columns} from project where ${where} ${part}) page on true order by ${order}`
      : fragment`
        with few as materialized (select ${columns} from project where ${where} limit ${readOnce + 1}),
          read_once as materialized (select count(*) as few from few),
          heading as materialized (
            select case when few <= ${readOnce} then few else (${counted}) end as total from read_once),
          many as materialized (
            select ${columns} from project where ${where} and (select total from heading) between ${readOnce + 1} and ${sortedMax})
        select heading.total, page.id, page.name from heading
        left join (
          (select * from (select * from few where (select total from heading) <= ${readOnce} union all select * from many) found ${part})
          union all (select ${columns} from project where ${where} and (select total from heading) > ${sortedMax} ${part})
        ) page on true order by ${order}`
  // A word that every name has is best looked for in their order, one that few have by the index.
  const planned = filter.search === undefined ? undefined : 'anew'
  const rows = await sql.run<{ id: number; name: string; total: number }>(statement, planned)
  const projects = rows.filter(({ id }) => id !== null).map(({ id, name }) => ({ id, name }))
  return { projects, total: rows[0]!.total }
}

function conditionsOf({ fragment }: Sql, filter: ProjectFilter): Fragment[] {
  const conditions = [fragment`org_id = ${filter.org_id}`]
  if (filter.search !== undefined) {
    const pattern = likePattern(filter.search)
    conditions.push(
      filter.search.length < indexedLengthMin
        ? // What `ilike` does, without making the pattern small for every name.
          fragment`lower(name) like lower(${pattern}::text collate "C") escape '\\'`
        : fragment`name ilike ${pattern} escape '\\'`,
    )
  }
  if (filter.created_after) conditions.push(fragment`created_at >= ${filter.created_after}::timestamptz`)
  if (filter.created_before) conditions.push(fragment`created_at < ${filter.created_before}::timestamptz`)
  if (filter.updated_after) conditions.push(fragment`updated_at >= ${filter.updated_after}::timestamptz`)
  if (filter.updated_before) conditions.push(fragment`updated_at < ${filter.updated_before}::timestamptz`)
  return conditions
}

function orderings({ fragment }: Sql): Record<`${ProjectFilter['sort']} ${ProjectFilter['order']}`, Fragment> {
  return {
    'name asc': fragment`name, id`,
    'name desc': fragment`name desc, id desc`,
    'created_at asc': fragment`created_at, id`,
    'created_at desc': fragment`created_at desc, id desc`,
    'updated_at asc': fragment`updated_at, id`,
    'updated_at desc': fragment`updated_at desc, id desc`,
  }
}
