import type { TaskInput } from '#contract/tasks/tasks.ts'
import type { TaskState } from '#contract/tasks/task-lifecycle.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import type { NewDelegation, TaskError, TaskOutput, TaskUsage } from '../task.ts'

type Asked = NewDelegation & { parent_task_id: string; project_id: number }

export async function insertDelegations(tx: Sql, delegations: readonly Asked[]): Promise<void> {
  await tx`
    insert into delegation (child_task_id, parent_task_id, step_index, project_id, agent_id, agent_version, depth_max, input)
    select child_task_id, parent_task_id, step_index, project_id, agent_id, agent_version, depth_max, input
    from jsonb_to_recordset(${jsonb(delegations)}::jsonb) as d(child_task_id text, parent_task_id text, step_index int, project_id bigint,
      agent_id text, agent_version int, depth_max int, input jsonb)`
}

/** A delegation whose task must be created, with the members that the task inherits from its parent. */
export interface RequestedDelegation {
  child_task_id: string
  parent_task_id: string
  project_id: number
  agent_id: string
  agent_version: number | null
  depth_max: number
  input: TaskInput
  root_task_id: string
  depth: number
  priority: number
  created_by: string
  credential_id: string | null
  request_id: string | null
  trace_id: string | null
  traceparent: string | null
  /** The parent has ended, so nothing waits for the task. */
  is_void: boolean
}

/**
 * Locks a requested delegation, so that two processes cannot create the same task. Undefined if another process has
 * locked it or its task exists already.
 */
export async function lockRequested(tx: Sql, child_task_id: string): Promise<RequestedDelegation | undefined> {
  const [row] = await tx<RequestedDelegation>`
    with asked as materialized (
      select * from delegation where child_task_id = ${child_task_id} and state = 'requested' for update skip locked)
    select d.child_task_id, d.parent_task_id, d.project_id, d.agent_id, d.agent_version, d.depth_max, d.input,
      coalesce(p.root_task_id, p.id) as root_task_id, p.depth + 1 as depth, p.priority, p.created_by, p.credential_id, p.request_id,
      p.trace_id, p.traceparent, p.finished_at is not null as is_void
    from asked d join task p on p.id = d.parent_task_id`
  return row
}

export async function noteCreated(tx: Sql, child_task_id: string): Promise<void> {
  await tx`update delegation set state = 'created', input = null where child_task_id = ${child_task_id}`
}

/** Records why no task is created; the parent reads it as the call's result. */
export async function noteRefused(
  tx: Sql,
  child_task_id: string,
  refusal: { code: string; message: string },
): Promise<void> {
  await tx`
    update delegation set state = 'refused', input = null, refusal = ${jsonb(refusal)}::jsonb where child_task_id = ${child_task_id}`
}

/**
 * Creates the shared budget of a root task and the tasks below it, if the root limits cost or tokens. Usage so far
 * counts. A task has at most one such budget.
 */
export async function insertRootBudget(tx: Sql, id: string, root_task_id: string): Promise<void> {
  await tx`
    insert into budget (id, org_id, project_id, scope, subject, max_cost_usd, max_tokens, period, window_start, spent_cost_usd, spent_tokens,
      created_by)
    select ${id}, p.org_id, t.project_id, 'task', t.id, (t.budget ->> 'max_cost_usd')::numeric, (t.budget ->> 'max_tokens')::bigint, 'total',
      t.created_at, used.cost_usd, used.tokens, t.created_by
    from task t join project p on p.id = t.project_id
    cross join lateral (
      select coalesce(sum((u ->> 'cost_usd')::numeric), 0) as cost_usd,
        coalesce(sum((u ->> 'input_tokens')::bigint + (u ->> 'output_tokens')::bigint), 0) as tokens
      from unnest(array[t.usage, t.children_usage]) as u
    ) used
    where t.id = ${root_task_id} and (t.budget ->> 'max_cost_usd' is not null or t.budget ->> 'max_tokens' is not null)
    on conflict (subject, period) do nothing`
}

/** Updates the budget of a root task to the task's limits, or deletes it if neither cost nor tokens are limited. */
export async function updateRootBudget(tx: Sql, task_id: string): Promise<void> {
  await tx`
    delete from budget b using task t where b.scope = 'task' and b.subject = ${task_id} and t.id = b.subject
      and t.budget ->> 'max_cost_usd' is null and t.budget ->> 'max_tokens' is null`
  await tx`
    update budget b set max_cost_usd = (t.budget ->> 'max_cost_usd')::numeric, max_tokens = (t.budget ->> 'max_tokens')::bigint,
      updated_at = now()
    from task t where b.scope = 'task' and b.subject = ${task_id} and t.id = b.subject`
}

/** A delegation that has ended, with its outcome. */
export interface EndedDelegation {
  child_task_id: string
  step_index: number
  refusal: { code: string; message: string } | null
  status: TaskState | null
  output: TaskOutput | null
  error: TaskError | null
  usage: TaskUsage | null
  children_usage: TaskUsage | null
  agent_name: string | null
}

/** Outcomes that a locked task has not read yet. */
export async function listEnded(tx: Sql, parent_task_id: string): Promise<EndedDelegation[]> {
  return tx<EndedDelegation>`
    select d.child_task_id, d.step_index, d.refusal, c.status, c.output, c.error, c.usage, c.children_usage, a.name as agent_name
    from delegation d left join task c on c.id = d.child_task_id left join agent a on a.id = d.agent_id
    where d.parent_task_id = ${parent_task_id} and (d.state = 'refused' or d.state = 'created' and (c.id is null or c.finished_at is not null))
    order by d.step_index`
}

/** Marks outcomes as read, and stores the usage of the delegated tasks with their locked parent. */
export async function noteSettled(
  tx: Sql,
  parent_task_id: string,
  child_task_ids: readonly string[],
  children_usage: TaskUsage | null,
): Promise<void> {
  await tx`update delegation set state = 'settled', input = null where child_task_id = any(${[...child_task_ids]})`
  if (children_usage)
    await tx`update task set children_usage = ${jsonb(children_usage)}::jsonb where id = ${parent_task_id}`
}

/** Usage of the tasks below a task so far. */
export async function findChildrenUsage(tx: Sql, task_id: string): Promise<TaskUsage | null> {
  const [row] = await tx<{ children_usage: TaskUsage | null }>`select children_usage from task where id = ${task_id}`
  return row?.children_usage ?? null
}

/** Whether a delegated task of this one is open. */
export async function hasOpenChildren(tx: Sql, parent_task_id: string): Promise<boolean> {
  const rows = await tx`
    select from delegation where parent_task_id = ${parent_task_id} and state in ('requested', 'created') limit 1`
  return rows.length > 0
}

/** Ends delegations of canceled tasks for which no task was created. */
export async function dropRequested(tx: Sql, parent_task_ids: readonly string[]): Promise<void> {
  await tx`
    update delegation set state = 'settled', input = null
    where parent_task_id = any(${[...parent_task_ids]}) and state in ('requested', 'refused')`
}

/** Ids of the open tasks below a task, at any depth. */
export async function listOpenBelow(tx: Sql, task_id: string): Promise<string[]> {
  const rows = await tx<{ id: string }>`
    with recursive below as (
      select id, finished_at from task where parent_task_id = ${task_id}
      union all select t.id, t.finished_at from task t join below b on t.parent_task_id = b.id
    ) select id from below where finished_at is null`
  return rows.map(({ id }) => id)
}

/** A batch of unfinished delegations: tasks to create, parents with ended tasks, and open tasks whose parents ended. */
export async function listUnsettled(
  sql: Sql,
  limit: number,
): Promise<{ requested: string[]; parents: string[]; orphans: string[] }> {
  const some = await sql`select from delegation where state <> 'settled' limit 1`
  if (some.length === 0) return { requested: [], parents: [], orphans: [] }
  const requested = await sql<{ id: string }>`
    select child_task_id as id from delegation where state = 'requested' and created_at < now() - interval '1 second'
    order by created_at limit ${limit}`
  const parents = await sql<{ id: string }>`
    select distinct d.parent_task_id as id from delegation d left join task c on c.id = d.child_task_id
    where d.state = 'refused' or d.state = 'created' and (c.id is null or c.finished_at is not null) limit ${limit}`
  const orphans = await sql<{ id: string }>`
    select d.child_task_id as id from delegation d join task c on c.id = d.child_task_id left join task p on p.id = d.parent_task_id
    where d.state = 'created' and c.finished_at is null and c.cancel_requested_at is null and (p.id is null or p.finished_at is not null)
    limit ${limit}`
  const ids = (rows: { id: string }[]): string[] => rows.map(({ id }) => id)
  return { requested: ids(requested), parents: ids(parents), orphans: ids(orphans) }
}
