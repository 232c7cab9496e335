import type { AgentState } from '#contract/agent-lifecycle.ts'
import type { Effort, PromptCache, ServiceTier } from '#contract/model-dials.ts'
import type { TaskInput } from '#contract/tasks.ts'
import type {
  ApprovalTimeout,
  StepState,
  StepType,
  TaskState,
  ToolPolicy,
  WaitReason,
} from '#contract/task-lifecycle.ts'
import type { Fragment, Sql } from '../platform/database.ts'
import { isToldOfTasks } from './task-outbox.ts'
import type { Hold, TaskLimits } from './budgets.ts'
import type { Money } from './spending.ts'

/** Why a task waits, since when, and until when where that is known. */
export interface Wait {
  reason: WaitReason
  since: string
  until: string | null
  approval_ids: string[]
}

/** What a task has consumed. A cost that cannot be known is null, never guessed. */
export interface TaskUsage {
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  reasoning_tokens: number
  steps: number
  tool_calls: number
  cost_usd: number | null
  by_model: Record<string, ModelShare>
}

export interface ModelShare {
  calls: number
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  reasoning_tokens: number
  cost_usd: number | null
}

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

/** What ended a task badly. `code` is for programs, `message` for people. */
export interface TaskError {
  code: string
  message: string
  /** Whether the same task, tried again later, may end well. */
  retryable: boolean
  step_id: string | null
}

export interface TaskOutput {
  content: string
  data: unknown
}

/** Who asked to cancel, and how. */
export interface CancelRequest {
  reason: string | null
  mode: 'graceful' | 'force'
  user_id: string
}

/** A task under lock, with what decisions about it depend on: its agent's state and its credential's tokens. */
export interface LockedTask {
  id: string
  project_id: number
  agent_id: string
  agent_version: number
  status: TaskState
  wait: Wait | null
  usage: TaskUsage
  priority: number
  attempt: number
  writes: number
  crashes: number
  max_attempts: number
  /** What others changed in it, and its worker has not read yet: messages, resolved approvals. */
  unseen: number
  thread_id: string | null
  retried_from: string | null
  concurrency_key: string | null
  /** The credential that created it; null where a schedule did. */
  credential_id: string | null
  worker_id: string | null
  job_id: string | null
  job_attempt: number
  /** Whether it holds one of its agent's `max_concurrent_tasks`, or goes on as soon as it gets one. */
  slot: 'held' | 'wanted' | null
  cancel: CancelRequest | null
  cancel_requested_at: string | null
  last_sequence: number
  timeout_seconds: number | null
  expires_at: string | null
  created_by: string
  request_id: string | null
  created_at: string
  started_at: string | null
  /** Null when the agent is gone. */
  agent: LockedAgent | null
  org_id: string | null
  /** To which of a task's events active webhooks of the organization have subscribed; null where to none. */
  subscriptions: string[] | null
  /** Its own limits: those that it was given and those of its agent's configuration, the lower ones. */
  budget: TaskLimits
  /** Whether it has a budget, its own or one of its agent, project, organization or credential, as was seen without a lock. */
  has_budget: boolean
  /** What is reserved for the model call in flight, or what it waits for; null where that is nothing. */
  hold: Hold | null
  /** Its budgets, where this transaction has locked them. */
  money?: Money
  /** Tokens that the agent's credential has used in the running hour (decision D90). */
  tokens_used: number
  /** The moment of the transaction. */
  now: string
  /**
   * The `created_at` of the events that the transaction writes: its moment, or that of the change before where it has waited for that.
   * So what is told of a task never goes back in time.
   */
  told_at: string
}

export interface LockedAgent {
  name: string
  status: AgentState
  settles_to: string | null
  token_subject: string
  /** How many of its tasks may run at the same time; null where that is not limited. */
  max_concurrent_tasks: number | null
  /** Whether its `last_activity` is of this second. */
  is_fresh: boolean | null
}

/**
 * Locks tasks in the order of their ids, so that two transactions never wait for each other. Whoever locks tasks locks
 * them before their jobs and never waits for an agent's row: an agent's actions lock the agent first, then its tasks.
 */
export async function lockTasks(tx: Sql, ids: readonly string[]): Promise<Map<string, LockedTask>> {
  const rows = await tx.run<LockedTask>(lockStatement(tx, ids, tx.fragment``))
  return new Map(rows.map((row) => [row.id, row]))
}

/** The same, with what the tasks are run with. */
export async function lockTasksWithWork(
  tx: Sql,
  ids: readonly string[],
): Promise<Map<string, LockedTask & { work: TaskWork }>> {
  const more = tx.fragment`, t.input, t.output_schema, t.metadata, t.traceparent, coalesce(v.config, a.config) as config,
    case when v.agent_id is null then a.environment else v.environment end as environment`
  const rows = await tx.run<LockedTask & TaskWork>(lockStatement(tx, ids, more))
  return new Map(
    rows.map(({ input, output_schema, metadata, traceparent, config, environment, ...task }) => {
      const { id, timeout_seconds, thread_id } = task
      const work = { id, input, output_schema, timeout_seconds, thread_id, metadata, traceparent, config, environment }
      return [id, { ...task, work }]
    }),
  )
}

function lockStatement({ fragment }: Sql, ids: readonly string[], more: Fragment): Fragment {
  return fragment`
    select t.id, t.project_id, t.agent_id, t.agent_version, t.status, t.wait, t.usage, t.priority, t.attempt, t.writes, t.crashes,
      t.max_attempts, t.unseen, t.thread_id, t.retried_from, t.concurrency_key, t.credential_id, t.worker_id, t.job_id, t.job_attempt, t.slot, t.budget, t.hold, t.cancel, t.cancel_requested_at, t.last_sequence, t.timeout_seconds,
      t.expires_at, t.created_by, t.request_id, t.created_at, t.started_at, now() as now, greatest(now(), t.updated_at) as told_at, p.org_id, coalesce(u.tokens, 0) as tokens_used,
      (select array_agg(distinct name) from webhook w cross join unnest(w.events) name
        where w.org_id = p.org_id and ${isToldOfTasks}) as subscriptions,
      case when a.id is not null then
        jsonb_build_object('name', a.name, 'status', a.status, 'settles_to', a.settles_to, 'token_subject', a.token_subject,
          'max_concurrent_tasks', a.max_concurrent_tasks,
          'is_fresh', a.last_activity > now() - interval '1 second')
      end as agent,
      t.budget <> '{}' or exists (select from budget b
        where b.subject in (t.agent_id, 'proj_' || t.project_id, p.org_id, t.credential_id)) as has_budget ${more}
    from task t
    left join agent a on a.id = t.agent_id
    left join agent_version v on v.agent_id = t.agent_id and v.version = t.agent_version
    left join project p on p.id = t.project_id
    left join token_usage u on u.subject = a.token_subject and u.hour = date_trunc('hour', now(), 'UTC')
    where t.id = any(${[...ids]}) order by t.id for update of t`
}

/** What a claimed task is run with. Large values are read here once, not with every write. */
export interface TaskWork {
  id: string
  input: TaskInput
  /** Its own; null where that of its agent's configuration counts. */
  output_schema: Record<string, unknown> | null
  timeout_seconds: number | null
  thread_id: string | null
  config: AgentConfig
  environment: Buffer | null
  metadata: Record<string, unknown>
  /** W3C Trace Context of the request that created it. */
  traceparent: string | null
}

/** The members of an agent's configuration that a task depends on. */
export interface AgentConfig {
  model: string
  temperature?: number
  max_tokens?: number
  effort?: Effort
  service_tier?: ServiceTier
  prompt_cache?: PromptCache
  context?: { compact_at_tokens?: number; keep_last_steps?: number; model?: string }
  output_schema?: Record<string, unknown>
  tools?: string[]
  system_prompt?: string
  max_steps?: number
  timeout_seconds?: number
  fallback_models?: string[]
  tool_policies?: Record<string, ToolPolicy>
  retry?: { max_attempts?: number; initial_delay_seconds?: number; max_delay_seconds?: number }
  /** Seconds until an approval that nobody gave expires, and what becomes of its call then. */
  approval_timeout_seconds?: number
  approval_on_timeout?: ApprovalTimeout
}

/** A step of the journal. */
export interface Step {
  task_id: string
  index: number
  id: string
  agent_id: string
  type: StepType
  status: StepState
  /** How many times it was begun. */
  attempt: number
  /** How many of those failed at the provider. */
  failures: number
  name: string
  input: unknown
  output: unknown
  error: { code: string; message: string; retryable: boolean } | null
  model: string | null
  usage: unknown
  /** Of a finished call of a model: the turn as its provider wrote it, encrypted, in base64; see `turns.ts`. */
  turn?: string | null
}

/** The journal of tasks, each in the order of its steps. */
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

/** Messages that tasks have read, each in the order in which they came. */
export async function listReadMessages(
  sql: Sql,
  task_ids: readonly string[],
): Promise<Map<string, { content: string; before_step: number }[]>> {
  const rows = await sql<{ task_id: string; content: string; before_step: number }>`
    select task_id, content, before_step from task_message
    where task_id = any(${[...task_ids]}) and before_step is not null order by task_id, position`
  return Map.groupBy(rows, ({ task_id }) => task_id)
}
