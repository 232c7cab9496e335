import type { StepState, StepType, TaskState, WaitReason } from '#contract/task-lifecycle.ts'
import type { Fragment, Sql } from '../platform/database.ts'

/** Why a task waits, since when, and until when where that is known (tasks 3). */
export interface Wait {
  reason: WaitReason
  since: string
  until: string | null
  approval_ids: string[]
}

/** What a task has consumed (tasks 3). A cost that cannot be known is null, never guessed. */
export interface TaskUsage {
  input_tokens: number
  output_tokens: number
  cached_tokens: number
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
  cost_usd: number | null
}

export const noUsage: TaskUsage = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  steps: 0,
  tool_calls: 0,
  cost_usd: null,
  by_model: {},
}

/** What ended a task badly (tasks 3). `code` is for programs, `message` for people. */
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

/** Who asked to cancel, and how (tasks 7). */
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
  worker_id: string | null
  job_id: string | null
  job_attempt: number
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
  /** Tokens that the agent's credential has used in the running hour (decision D90). */
  tokens_used: number
  /** The moment of the transaction, which is the `created_at` of all that it writes. */
  now: string
}

export interface LockedAgent {
  name: string
  status: string
  settles_to: string | null
  token_subject: string
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
  const more = tx.fragment`, t.input, t.metadata, coalesce(v.config, a.config) as config,
    case when v.agent_id is null then a.environment else v.environment end as environment`
  const rows = await tx.run<LockedTask & TaskWork>(lockStatement(tx, ids, more))
  return new Map(
    rows.map(({ input, metadata, config, environment, ...task }) => {
      const { id, timeout_seconds } = task
      return [id, { ...task, work: { id, input, timeout_seconds, metadata, config, environment } }]
    }),
  )
}

function lockStatement({ fragment }: Sql, ids: readonly string[], more: Fragment): Fragment {
  return fragment`
    select t.id, t.project_id, t.agent_id, t.agent_version, t.status, t.wait, t.usage, t.priority, t.attempt, t.writes, t.crashes,
      t.max_attempts, t.worker_id, t.job_id, t.job_attempt, t.cancel, t.cancel_requested_at, t.last_sequence, t.timeout_seconds,
      t.expires_at, t.created_by, t.request_id, t.created_at, t.started_at, now() as now, p.org_id, coalesce(u.tokens, 0) as tokens_used,
      case when a.id is not null then
        jsonb_build_object('name', a.name, 'status', a.status, 'settles_to', a.settles_to, 'token_subject', a.token_subject,
          'is_fresh', a.last_activity > now() - interval '1 second')
      end as agent ${more}
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
  input: string | TaskInputMessage[]
  timeout_seconds: number | null
  config: AgentConfig
  environment: Buffer | null
  metadata: Record<string, unknown>
}

export interface TaskInputMessage {
  role: 'system' | 'user' | 'assistant'
  content: string
}

/** The members of an agent's configuration that a task depends on. */
export interface AgentConfig {
  model: string
  temperature?: number
  max_tokens?: number
  tools?: string[]
  system_prompt?: string
  max_steps?: number
  timeout_seconds?: number
}

/** A step of the journal (tasks 5). */
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
}

/** The journal of tasks, each in the order of its steps. */
export async function listSteps(sql: Sql, task_ids: readonly string[]): Promise<Map<string, Step[]>> {
  const rows = await sql<Step>`
    select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage
    from task_step where task_id = any(${[...task_ids]}) order by task_id, index`
  return Map.groupBy(rows, ({ task_id }) => task_id)
}
