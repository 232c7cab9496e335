import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { likePattern } from './projects.queries.ts'

/** Validated filters of `GET /api/v1/projects`. */
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

/** Minimum length of a search that an index can find. */
const indexedLengthMin = 3
/** Up to so many matches of a search are read once, then counted and sorted. */
const readOnce = 500
/**
 * Up to so many matches are read and sorted, which fits in PostgreSQL's 4 MB of work memory: in the order of the list
 * they could all be at its end. With more matches the list is read in its order, because a page is then found early.
 */
const sortedMax = 20_000

/**
 * A page of projects and their exact total number, from one snapshot; ties are sorted by id. The number of all
 * projects is maintained in `project_count`; with filters, matches are counted. A search uses trigrams if PostgreSQL
 * has the extension (`project_name_parts`); one of fewer than three letters scans all names.
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
  // Planned each time: for a frequent text the order index is best, for a rare one the trigram index.
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
        ? // Equivalent to `ilike`, but lowercases the pattern only once.
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
