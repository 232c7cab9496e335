import { taskColumns, type TaskRow } from '../../engine/journal/stored-task.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** A task of an agent, with the context id that clients use for its thread. */
export interface A2aTask extends TaskRow {
  context_id: string | null
}

const columns = (sql: Sql): Fragment => sql.fragment`
  ${taskColumns(sql)}, coalesce(
    (select d.key from door_thread d where d.thread_id = t.thread_id and d.door = 'a2a' order by d.created_at limit 1),
    t.thread_id) as context_id`

/** A task of an agent; undefined if it does not exist. */
export async function findA2aTask(sql: Sql, agent_id: string, id: string): Promise<A2aTask | undefined> {
  if (!isId('task', id)) return undefined
  const [row] = await sql.run<A2aTask>(
    sql.fragment`select ${columns(sql)} from task t where id = ${id} and agent_id = ${agent_id}`,
  )
  return row
}

/** A message of a client, and the sequence number of the first event after it. */
export interface SentMessage {
  first_sequence: number
  message: Record<string, unknown>
}

/** Messages that A2A clients sent to a task, in their order. */
export async function listSentMessages(sql: Sql, task_id: string): Promise<SentMessage[]> {
  return sql<SentMessage>`
    select first_sequence, input->0 as message from door_response
    where task_id = ${task_id} and request->>'door' = 'a2a' order by ordinal`
}

/** Filters of `ListTasks`. */
export interface A2aTaskFilter {
  agent_id: string
  thread_ids: readonly string[] | undefined
  statuses: readonly string[] | undefined
  /** For waiting tasks: only these reasons, or all except these. */
  waits: { reasons: readonly string[]; among: boolean } | undefined
  after: string | undefined
  cursor: { at: string; id: string } | undefined
  limit: number
}

function conditionsOf({ fragment }: Sql, filter: A2aTaskFilter): Fragment {
  const { agent_id, thread_ids, statuses, waits } = filter
  const all = [fragment`t.agent_id = ${agent_id}`]
  if (thread_ids) all.push(fragment`t.thread_id = any(${[...thread_ids]})`)
  if (statuses) {
    const waiting = waits
      ? fragment`or (t.status = 'waiting' and (t.wait->>'reason' = any(${[...waits.reasons]})) = ${waits.among}::boolean)`
      : fragment``
    all.push(fragment`(t.status = any(${[...statuses]}) ${waiting})`)
  }
  return all.reduce((left, right) => fragment`${left} and ${right}`)
}

/**
 * A page of an agent's tasks, latest status change first. Open tasks are sorted by `updated_at`, which is cheap
 * because they are few; ended tasks by `finished_at`, which has an index.
 */
export async function listA2aTasks(sql: Sql, filter: A2aTaskFilter): Promise<(A2aTask & { status_at: string })[]> {
  const { fragment } = sql
  const { cursor, after, limit } = filter
  const where = (at: Fragment): Fragment => {
    const parts = [conditionsOf(sql, filter)]
    // Clients see milliseconds, so times are compared with that precision.
    if (after) parts.push(fragment`${at} > ${after}::timestamptz`)
    if (cursor)
      parts.push(fragment`${at} < ${cursor.at}::timestamptz + interval '1 millisecond'
        and (date_trunc('milliseconds', ${at}), t.id) < (${cursor.at}::timestamptz, ${cursor.id})`)
    return parts.reduce((left, right) => fragment`${left} and ${right}`)
  }
  return sql.run(fragment`
    with ended as (
      select t.id, date_trunc('milliseconds', t.finished_at) as status_at from task t
      where t.finished_at is not null and ${where(fragment`t.finished_at`)} order by t.finished_at desc, t.id desc limit ${limit + 50}
    ), unended as (
      select t.id, date_trunc('milliseconds', t.updated_at) as status_at from task t
      where t.finished_at is null and t.status in ('queued', 'running', 'waiting') and ${where(fragment`t.updated_at`)}
      order by status_at desc, t.id desc limit ${limit}
    ), page as (
      select * from (select * from ended union all select * from unended) pages order by status_at desc, id desc limit ${limit}
    )
    select ${columns(sql)}, page.status_at from page join task t using (id) order by page.status_at desc, id desc`)
}

/** Number of tasks that match the filter, up to `max`. */
export async function countA2aTasks(sql: Sql, filter: A2aTaskFilter, max: number): Promise<number> {
  const { fragment } = sql
  const { after } = filter
  const since = after ? fragment`and coalesce(t.finished_at, t.updated_at) > ${after}::timestamptz` : fragment``
  const [row] = await sql.run<{ total: number }>(fragment`
    select count(*)::int as total from (select 1 from task t where ${conditionsOf(sql, filter)} ${since} limit ${max}) counted`)
  return row?.total ?? 0
}
