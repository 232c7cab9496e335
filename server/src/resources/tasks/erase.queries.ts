import { openaiBounds } from '#contract/doors/openai.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import { deleteEndedTasks } from '../../engine/maintenance/door-rows.queries.ts'

/** A task of a tree to erase. */
interface ErasedTask {
  id: string
  is_open: boolean
}

/** Locks a task with all tasks below it; empty if it does not exist. */
export async function lockTree(tx: Sql, id: string): Promise<ErasedTask[]> {
  return tx<ErasedTask>`
    with recursive tree as (
      select id from task where id = ${id}
      union all select t.id from task t join tree on t.parent_task_id = tree.id
    )
    select id, finished_at is null as is_open from task where id in (select id from tree) order by id for update`
}

/** Finished root tasks of a project whose metadata contains `metadata`, oldest first. */
export async function findByMetadata(
  sql: Sql,
  { project_id, metadata, limit }: { project_id: number; metadata: Record<string, unknown>; limit: number },
): Promise<string[]> {
  const rows = await sql.run<{ id: string }>(sql.fragment`
    select id from task where project_id = ${project_id} and ${haveEnded(sql, metadata)} order by id limit ${limit}`)
  return rows.map(({ id }) => id)
}

/** Number of tasks of a project whose metadata contains `metadata`. */
export async function countByMetadata(
  sql: Sql,
  { project_id, metadata }: { project_id: number; metadata: Record<string, unknown> },
): Promise<number> {
  const [row] = await sql.run<{ tasks: number }>(sql.fragment`
    select
      (select count(*) from task where project_id = ${project_id} and ${haveEnded(sql, metadata)})
      + (select count(*) from task where project_id = ${project_id} and metadata @> ${jsonb(metadata)}::jsonb and finished_at is null)
      as tasks`)
  return row?.tasks ?? 0
}

/**
 * SQL condition: the task has ended and its metadata contains `metadata`. The index omits the member `door`, which
 * every task of a foreign protocol has.
 */
function haveEnded({ fragment }: Sql, metadata: Record<string, unknown>): Fragment {
  const { door: _door, ...own } = metadata
  const all = fragment`finished_at is not null and metadata @> ${jsonb(metadata)}::jsonb`
  if (Object.keys(own).length === 0) return all
  return fragment`${all} and metadata - 'door' @> ${jsonb(own)}::jsonb and metadata - 'door' <> '{}'`
}

/**
 * Events and log entries of a task are written within this time after its end. Ids of events may precede the task by
 * as much, because the process creates them before the statement that stores both.
 */
const eventsApart_seconds = 600

/** Removes locked, finished tasks with all their content. Stored webhook events keep only their metadata. */
export async function removeTasks(tx: Sql, { ids, org_id }: { ids: readonly string[]; org_id: string }): Promise<void> {
  const all = [...ids]
  await tx`
    update event e set data = jsonb_build_object('task', jsonb_build_object('id', e.data -> 'task' -> 'id'), 'erased', true)
    from (
      select min(created_at) as since, max(finished_at) as until from task where id = any(${all})
    ) span
    where e.org_id = ${org_id} and e.id >= id_floor('evt', span.since - make_interval(secs => ${eventsApart_seconds}))
      and e.id < id_floor('evt', span.until + make_interval(secs => ${eventsApart_seconds})) and e.data -> 'task' ->> 'id' = any(${all})`
  await tx`
    delete from file f where f.task_id = any(${all})
      and not exists (select from task_file n where n.file_id = f.id and n.task_id <> all(${all}))`
  await tx`
    delete from agent_log l using task t where t.id = any(${all}) and l.agent_id = t.agent_id and l.task_id = t.id
      and l.timestamp >= t.created_at and l.timestamp < t.finished_at + make_interval(secs => ${eventsApart_seconds})`
  await tx`delete from delegation where child_task_id = any(${all})`
  // Records of requests have no index by task; older ones are already removed.
  await tx`
    delete from door_request where task_id = any(${all}) and exists (select from task where id = any(${all}) and metadata ? 'door'
      and finished_at > now() - make_interval(mins => ${openaiBounds.retry_minutes * 4}))`
  await deleteEndedTasks(tx, all)
}
