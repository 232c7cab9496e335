import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { subscriptionsIn } from './task-outbox.ts'
import type { AgentConfig, Caller, LockedTask, ReadMessage, TaskWork, TaskUsage, Step } from '../task.ts'

export const noUsage: TaskUsage = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  reasoning_tokens: 0,
  steps: 0,
  tool_calls: 0,
  cost_usd: 0,
  by_model: {},
}

/**
 * Locks tasks in the order of their ids, so two transactions never deadlock. Lock order: tasks before their jobs, and
 * never an agent's row after a task. An agent's actions lock the agent first, then its tasks.
 */
export async function lockTasks(tx: Sql, ids: readonly string[]): Promise<Map<string, LockedTask>> {
  if (ids.length === 0) return new Map()
  const rows = await tx.run<LockedTask>(lockStatement(tx, { where: hasId(tx, ids), more: tx.fragment`` }))
  return new Map(rows.map((row) => [row.id, row]))
}

/** Locks tasks like `lockTasks`, and also reads what their runs need. */
export async function lockTasksWithWork(
  tx: Sql,
  ids: readonly string[],
): Promise<Map<string, LockedTask & { work: TaskWork }>> {
  const rows = await tx.run<LockedRow>(
    lockStatement(tx, { where: hasId(tx, ids), more: tx.fragment`, ${columnsOfWork(tx)}` }),
  )
  return new Map(rows.map((row) => [row.id, withWork(row)]))
}

/** A row of `lockStatement` with `columnsOfWork`. */
export type LockedRow = LockedTask & TaskWork

/** What the run of a task needs, as columns for `lockStatement`. */
export function columnsOfWork({ fragment }: Sql): Fragment {
  return fragment`t.input, t.output_schema, t.metadata, t.traceparent, t.caller, coalesce(v.config, a.config) as config,
    case when v.agent_id is null then a.environment else v.environment end as environment`
}

/** A locked task, with what its run needs in one member. */
export function withWork(row: LockedRow): LockedTask & { work: TaskWork } {
  const { input, output_schema, metadata, traceparent, caller, config, environment, ...task } = row
  const { id, timeout_seconds, thread_id } = task
  const work = {
    ...{ id, input, output_schema, timeout_seconds, thread_id, metadata, traceparent, caller, environment },
    // A deleted agent has none; its task is canceled.
    config: config && withCaller(config, caller),
  }
  return { ...task, work }
}

/** The configuration that a task runs with: the agent's, changed by the caller's settings for this task. */
export function withCaller(config: AgentConfig, caller: Caller | null): AgentConfig {
  if (!caller) return config
  const { instructions, max_output_tokens, temperature, effort } = caller
  const prompts = [config.system_prompt, instructions].filter((text) => text !== undefined && text !== '')
  return {
    ...config,
    ...(prompts.length > 0 && { system_prompt: prompts.join('\n\n') }),
    ...(max_output_tokens !== undefined && {
      max_tokens: Math.min(config.max_tokens ?? Infinity, max_output_tokens),
    }),
    ...(temperature !== undefined && { temperature }),
    ...(effort !== undefined && { effort }),
  }
}

function hasId({ fragment }: Sql, ids: readonly string[]): Fragment {
  return fragment`t.id = any(${[...ids]})`
}

/** Locks the tasks (`t`) of a condition in the order of their ids, and reads them with more columns. */
export function lockStatement({ fragment }: Sql, { where, more }: { where: Fragment; more: Fragment }): Fragment {
  return fragment`
    select t.id, t.project_id, t.agent_id, t.agent_version, t.status, t.wait, t.usage, t.priority, t.attempt, t.writes, t.crashes,
      t.max_attempts, t.unseen, t.thread_id, t.parent_task_id, t.root_task_id, t.depth, t.retried_from, t.concurrency_key, t.credential_id, t.worker_id, t.job_id, t.job_attempt, t.slot, t.budget, t.hold, t.cancel, t.cancel_requested_at, t.last_sequence, t.timeout_seconds,
      t.expires_at, t.created_by, t.request_id, t.created_at, t.started_at, now() as now, greatest(now(), t.updated_at) as event_at, p.org_id, coalesce(o.model_providers_version, 0) as providers_version, coalesce(u.tokens, 0) as tokens_used,
      ${subscriptionsIn({ fragment }, fragment`p.org_id`, fragment`t.id`)} as subscriptions,
      case when a.id is not null then
        jsonb_build_object('name', a.name, 'status', a.status, 'settles_to', a.settles_to, 'token_subject', a.token_subject,
          'max_concurrent_tasks', a.max_concurrent_tasks,
          'is_fresh', a.last_activity > now() - interval '1 second')
      end as agent,
      t.budget <> '{}' or exists (select from budget b
        where b.subject in (t.agent_id, 'proj_' || t.project_id, p.org_id, t.credential_id, coalesce(t.root_task_id, t.id))) as has_budget ${more}
    from task t
    left join agent a on a.id = t.agent_id
    left join agent_version v on v.agent_id = t.agent_id and v.version = t.agent_version
    left join project p on p.id = t.project_id
    left join organization o on o.id = p.org_id
    left join token_usage u on u.subject = a.token_subject and u.hour = date_trunc('hour', now(), 'UTC')
    where ${where} order by t.id for update of t`
}

/** The journals of tasks, each in the order of its steps. */
export async function listSteps(sql: Sql, task_ids: readonly string[]): Promise<Map<string, Step[]>> {
  const rows = await sql<Step>`
    select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage,
      encode(turn, 'base64') as turn
    from task_step where task_id = any(${[...task_ids]}) order by task_id, index`
  return Map.groupBy(rows, ({ task_id }) => task_id)
}

/** One step of a journal. */
export async function findStep(sql: Sql, task_id: string, index: number): Promise<Step | undefined> {
  const [step] = await sql<Step>`
    select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage
    from task_step where task_id = ${task_id} and index = ${index}`
  return step
}

/** The messages that tasks have read, each in the order of arrival. */
export async function listReadMessages(sql: Sql, task_ids: readonly string[]): Promise<Map<string, ReadMessage[]>> {
  const rows = await sql<ReadMessage & { task_id: string }>`
    select task_id, content, parts, before_step from task_message
    where task_id = any(${[...task_ids]}) and before_step is not null order by task_id, position`
  return Map.groupBy(rows, ({ task_id }) => task_id)
}
