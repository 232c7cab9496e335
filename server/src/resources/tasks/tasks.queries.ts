import { bounds } from '#contract/core/limits.ts'
import { agentAcceptsTasks, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import { taskSearch, type TaskNode } from '#contract/tasks/tasks.ts'
import { projectId } from '#contract/core/project-id.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import { taskColumns, type TaskRow } from '../../engine/journal/stored-task.ts'
import { listTaskEvents } from '../../events/streams/streams.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { addUsages } from '../../engine/journal/task-usage.ts'
import { isId } from '../../platform/ids.ts'
import type { Step, TaskArtifact } from '../../engine/task.ts'

/** A task in a response. */
export function taskView({ children_usage, ...row }: TaskRow) {
  const usage = wholeUsage(row.usage)
  return {
    ...row,
    root_task_id: row.root_task_id ?? row.id,
    usage: { ...usage, total: children_usage ? addUsages(usage, wholeUsage(children_usage)) : usage },
    project_id: projectId(row.project_id),
  }
}

/** Adds absent counts of reasoning tokens, which earlier builds did not store. */
function wholeUsage(usage: TaskRow['usage']): TaskRow['usage'] {
  if (usage.reasoning_tokens !== undefined) return usage
  const by_model = Object.fromEntries(
    Object.entries(usage.by_model).map(([model, share]) => [model, { ...share, reasoning_tokens: 0 }]),
  )
  return { ...usage, reasoning_tokens: 0, by_model }
}

/** Key of a task within its project. */
export interface TaskKey {
  id: string
  project_id: number
}

/** A task of a project; undefined if it does not exist or its agent is deleted. */
export async function findTask(sql: Sql, { id, project_id }: TaskKey): Promise<TaskRow | undefined> {
  if (!isId('task', id)) return undefined
  const [row] = await sql.run<TaskRow>(sql.fragment`
    select ${taskColumns(sql)} from task t where id = ${id} and project_id = ${project_id}
      and not exists (select from removed_agent r where r.agent_id = t.agent_id)`)
  return row
}

/** Tasks by key, in the order of the keys. */
export async function findTasks(sql: Sql, keys: readonly TaskKey[]): Promise<(TaskRow | undefined)[]> {
  const rows = await sql.run<TaskRow>(sql.fragment`
    select ${taskColumns(sql)} from unnest(${keys.map(({ id }) => id)}::text[], ${keys.map(({ project_id }) => project_id)}::bigint[]) as asked(task_id, of_project)
    join task t on t.id = asked.task_id and t.project_id = asked.of_project
    where not exists (select from removed_agent r where r.agent_id = t.agent_id)`)
  const byId = new Map(rows.map((row) => [row.id, row]))
  return keys.map(({ id, project_id }) => {
    const row = byId.get(id)
    return row?.project_id === project_id ? row : undefined
  })
}

/** A task of a project; throws 404 if it does not exist. */
export async function requireTask(sql: Sql, key: TaskKey): Promise<TaskRow> {
  const row = await findTask(sql, key)
  if (!row) throw notFound('task_not_found', 'task', key.id.slice(0, 100))
  return row
}

/**
 * A task that this transaction has created. Throws `missing` if its agent was deleted in the meantime, because no
 * client knows the id of the task yet.
 */
export async function requireMade(tx: Sql, key: TaskKey, missing: Problem): Promise<TaskRow> {
  const row = await findTask(tx, key)
  if (!row) throw missing
  return row
}

/** Validated filters of lists of tasks. */
export interface TaskFilter {
  project_id: number
  agent_id?: string | undefined
  status?: TaskState | undefined
  /** Of `error.code`. */
  error_code?: string | undefined
  thread_id?: string | undefined
  root_task_id?: string | undefined
  parent_task_id?: string | undefined
  schedule_id?: string | undefined
  /** Only tasks that were not delegated. */
  roots?: boolean | undefined
  /** Protocol or trigger of the tasks: `metadata.door.kind`. */
  door?: string | undefined
  created_after?: string | undefined
  created_before?: string | undefined
  finished_after?: string | undefined
  finished_before?: string | undefined
  /** Part of the input, case-insensitive, or the prefix of a task id: `task_…`. */
  search?: string | undefined
  sort: 'created_at' | '-created_at'
  /** Only tasks after this one in the sort order; `total` still counts all matches. */
  after_id?: string | undefined
  limit: number
  offset: number
}

/**
 * A page of tasks and their total number. Ids sort by the time of creation, so they are the sort order. The total
 * comes from maintained totals (`count_tasks` in SQL), which also map a period of creation to ids; for some filters,
 * such as a thread, tasks are counted.
 */
export async function listTasks(sql: Sql, filter: TaskFilter): Promise<{ tasks: TaskRow[]; total: number }> {
  const { fragment } = sql
  const { project_id, agent_id, status, thread_id, created_after, created_before, limit, offset } = filter
  const { root_task_id, parent_task_id, schedule_id, roots, door, error_code, finished_after, finished_before } = filter
  const conditions = [agent_id ? fragment`agent_id = ${agent_id}` : fragment`project_id = ${project_id}`]
  if (status) conditions.push(fragment`status = ${status}`)
  if (thread_id) conditions.push(fragment`thread_id = ${thread_id}`)
  // Filters without a maintained total: matches are counted.
  const isCounted = [
    ...[thread_id, root_task_id, parent_task_id, schedule_id, roots || undefined],
    ...[door, error_code, finished_after, finished_before],
  ].some((one) => one !== undefined)
  if (root_task_id !== undefined) conditions.push(fragment`(root_task_id = ${root_task_id} or id = ${root_task_id})`)
  if (parent_task_id !== undefined) conditions.push(fragment`parent_task_id = ${parent_task_id}`)
  if (schedule_id !== undefined) conditions.push(fragment`schedule_id = ${schedule_id}`)
  if (roots) conditions.push(fragment`parent_task_id is null`)
  if (door !== undefined) conditions.push(fragment`metadata #>> '{door,kind}' = ${door}`)
  if (error_code !== undefined) conditions.push(fragment`error ->> 'code' = ${error_code}`)
  if (created_after) conditions.push(fragment`created_at >= ${created_after}::timestamptz`)
  if (created_before) conditions.push(fragment`created_at < ${created_before}::timestamptz`)
  if (finished_after) conditions.push(fragment`finished_at >= ${finished_after}::timestamptz`)
  if (finished_before) conditions.push(fragment`finished_at < ${finished_before}::timestamptz`)
  const matching = () => conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const removed = fragment`array(select agent_id::text from removed_agent) as removed`
  const [count] = await sql.run<{ total: number; removed: string[]; first_id?: string; last_id?: string }>(
    isCounted
      ? fragment`select count(*) as total, ${removed} from task where ${matching()} and agent_id <> all(array(select agent_id from removed_agent))`
      : fragment`select c.*, ${removed} from count_tasks(${project_id}, ${agent_id ?? ''}, ${status ?? null},
          ${created_after ?? '-infinity'}::timestamptz, ${created_before ?? 'infinity'}::timestamptz) c`,
  )
  const { total, removed: deleted, first_id, last_id } = count!
  if (total === 0 || (total <= offset && filter.search === undefined)) return { tasks: [], total }
  if (deleted.length > 0) conditions.push(fragment`agent_id <> all(${deleted}::text[])`)
  if ((created_after || created_before) && !isCounted)
    conditions.push(fragment`id >= ${first_id}`, fragment`id <= ${last_id}`)
  if (filter.search !== undefined) return searchTasks(sql, matching(), { ...filter, search: filter.search })
  const order = orderOf(sql, filter.sort)
  if (filter.after_id !== undefined) conditions.push(isAfter(sql, filter.sort, filter.after_id))
  // An unnamed statement, so that it is planned each time: the best plan for an agent with most of the tasks would
  // read all of them for an // agent with few. Only ids are read for the position of the page, from an index.
  const page = fragment`
    with page as materialized (select id from task where ${matching()} order by ${order} limit ${limit} offset ${offset})
    select ${taskColumns(sql)} from task t where id in (select id from page) order by ${order}`
  const { rows } = await sql.query(page.text, page.values)
  return { tasks: rows as TaskRow[], total }
}

const orderOf = ({ fragment }: Sql, sort: TaskFilter['sort']): Fragment =>
  sort === 'created_at' ? fragment`id` : fragment`id desc`

const isAfter = ({ fragment }: Sql, sort: TaskFilter['sort'], id: string): Fragment =>
  sort === 'created_at' ? fragment`id > ${id}` : fragment`id < ${id}`

/** Searches a text in the newest tasks that pass the other filters, bounded by `taskSearch`. */
async function searchTasks(
  sql: Sql,
  matching: Fragment,
  { search, sort, after_id, limit, offset }: TaskFilter & { search: string },
): Promise<{ tasks: TaskRow[]; total: number }> {
  const { fragment } = sql
  const isId = /^task_[0-9a-z]*$/.test(search)
  // All characters of ids sort before a brace.
  const named = isId ? fragment`and id >= ${search} and id < ${`${search}{`}` : fragment``
  const text = fragment`case jsonb_typeof(input) when 'string' then input #>> '{}' when 'object' then input::text
    else (select string_agg(m->>'content', e'\n') from jsonb_array_elements(input) m) end`
  const contains = isId
    ? fragment`true`
    : fragment`position(lower(${search}::text) in lower(left(${text}, ${taskSearch.characters}))) > 0`
  // An unnamed statement, as above.
  const found = fragment`
    with newest as materialized (select id, input from task where ${matching} ${named} order by id desc limit ${taskSearch.tasks}),
      found as materialized (select id from newest where ${contains})
    select count(*) as total, array(select id::text from found where ${after_id === undefined ? fragment`true` : isAfter(sql, sort, after_id)}
      order by ${orderOf(sql, sort)} limit ${limit} offset ${offset}) as ids
    from found`
  const { rows } = await sql.query(found.text, found.values)
  const { total, ids } = rows[0] as { total: number; ids: string[] }
  if (ids.length === 0) return { tasks: [], total }
  const tasks = await sql.run<TaskRow>(fragment`
    select ${taskColumns(sql)} from task t where id = any(${ids}) order by ${orderOf(sql, sort)}`)
  return { tasks, total }
}

/** A task with the tasks below it, oldest first; up to `tree_tasks`. */
export async function listTree(
  sql: Sql,
  task_id: string,
): Promise<(Omit<TaskNode, 'children'> & { parent_task_id: string | null })[]> {
  return sql<Omit<TaskNode, 'children'> & { parent_task_id: string | null }>`
    with recursive tree as (
      select id, parent_task_id, agent_id, status, depth from task where id = ${task_id}
      union all
      select t.id, t.parent_task_id, t.agent_id, t.status, t.depth from task t join tree on t.parent_task_id = tree.id
    )
    select tree.id, tree.parent_task_id, tree.agent_id, a.name as agent_name, tree.status, tree.depth
    from tree left join agent a on a.id = tree.agent_id order by tree.depth, tree.id limit ${bounds.tree_tasks}`
}

/** A page of a task's journal, in the order of its steps. */
/** A step as it is shown. */
export type TaskStepRow = Omit<Step, 'task_id' | 'agent_id' | 'failures'> & {
  started_at: string
  finished_at: string | null
}

export async function listTaskSteps(sql: Sql, task_id: string, { limit, offset }: { limit: number; offset: number }) {
  const [count] = await sql<{ total: number }>`select count(*) as total from task_step where task_id = ${task_id}`
  const steps = await pageOfSteps(sql, task_id, { limit, offset })
  return { steps, total: count?.total ?? 0 }
}

/** Steps in their order, without a count of them all. */
export async function pageOfSteps(
  sql: Sql,
  task_id: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<TaskStepRow[]> {
  return sql<TaskStepRow>`
    select id, index, type, status, attempt, name, input, output, error, model, usage, started_at, finished_at
    from task_step where task_id = ${task_id} order by index limit ${limit} offset ${offset}`
}

/** Events of a task after a sequence. They are dense, so the last sequence is how many there are. */
export async function listEventPage(sql: Sql, task_id: string, { limit, after }: { limit: number; after: number }) {
  const [task] = await sql<{ total: number }>`select last_sequence as total from task where id = ${task_id}`
  const events = await listTaskEvents(sql, task_id, { after, limit })
  return { events, total: task?.total ?? 0 }
}

/** Whether an agent has as many queued tasks as it may have. Reads no further than that. */
export async function isQueueFull(sql: Sql, agent_id: string, queuedMax: number): Promise<boolean> {
  const [last] = await sql`
    select 1 from task where agent_id = ${agent_id} and status = 'queued' offset ${queuedMax - 1} limit 1`
  return last !== undefined
}

/** Steps in a task's journal. */
export async function countSteps(sql: Sql, task_id: string): Promise<number> {
  const [count] = await sql<{ steps: number }>`select count(*) as steps from task_step where task_id = ${task_id}`
  return count?.steps ?? 0
}

/** Messages that were sent to a task and that it has not read yet. */
export async function countUnread(sql: Sql, task_id: string): Promise<number> {
  const [count] = await sql<{ unread: number }>`
    select count(*) as unread from task_message where task_id = ${task_id} and before_step is null`
  return count?.unread ?? 0
}

/**
 * Whether a task waits for something that has not arrived. One that a worker is about to take, or that is offered to remote ones,
 * does not wait. So a
 * caller that asks for its next pause right after an answer does not get the previous one.
 */
export async function rests(sql: Sql, id: string): Promise<boolean> {
  const [row] = await sql`
    select 1 from task where id = ${id} and status = 'waiting' and wait->>'reason' <> 'worker'
      and (job_id is null or wait->>'until' is not null)`
  return row !== undefined
}

const queueRetry_seconds = 10

/** 429 `queue_full`: later there may be room. */
export function queueFull(limit: number, message?: string): Problem {
  return new Problem(
    'queue_full',
    { limit, retry_after: queueRetry_seconds },
    {
      message,
      members: { retry_after: queueRetry_seconds },
      headers: { 'retry-after': String(queueRetry_seconds) },
    },
  )
}

/** Throws 409 `agent_not_running` or 429 `queue_full` where an agent's state or its queue takes no further task. */
export async function requireRoom(
  sql: Sql,
  agent: { id: string; status: string; settles_to: string | null },
): Promise<void> {
  requireWorking(agent)
  if (await isQueueFull(sql, agent.id, bounds.queued_tasks)) throw queueFull(bounds.queued_tasks)
}

/** Throws 409 `agent_not_running` if the state of an agent does not accept tasks. */
export function requireWorking(agent: { id: string; status: string; settles_to: string | null }): void {
  if (agentAcceptsTasks(agent)) return
  throw new Problem(
    'agent_not_running',
    { resource_type: 'agent', resource_id: agent.id, current_status: agent.status },
    { message: `The agent has the status ${agent.status} and accepts no tasks. Start or restart it.` },
  )
}

/** Files that a task's tools saved as results, in the order of its steps. */
export async function listArtifacts(sql: Sql, task_id: string): Promise<TaskArtifact[]> {
  const rows = await sql<{ artifact: TaskArtifact }>`
    select a.value as artifact from task_step s
    cross join lateral jsonb_array_elements(coalesce(s.output->'artifacts', '[]')) with ordinality as a(value, nth)
    where s.task_id = ${task_id} and s.type = 'tool_call' order by s.index, a.nth`
  return rows.map(({ artifact }) => artifact)
}
