import type { AgentState } from '#contract/resources/agent-lifecycle.ts'
import type { BudgetScope } from '#contract/resources/budget-window.ts'
import type { EventOf } from '#contract/events/event-payloads.ts'
import type { EventName } from '#contract/events/events.ts'
import type { Effort, PromptCache, ServiceTier } from '#contract/models/call-settings.ts'
import type { ModelPrice } from '#contract/models/model-prices.ts'
import type {
  ApprovalKind,
  ApprovalTimeout,
  StepState,
  StepType,
  TaskEventType,
  TaskState,
  ToolPolicy,
  ToolSafety,
  WaitReason,
} from '#contract/tasks/task-lifecycle.ts'
import type { FilePart, TaskInput, TextPart } from '#contract/tasks/tasks.ts'
import type { AgentLogEntry } from '../events/agent-log.ts'

/**
 * A locked task and what decisions about it depend on: the state of its agent and the token usage of its credential.
 */
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
  /** Number of changes by others that its worker has not read yet: messages and resolved approvals. */
  unseen: number
  thread_id: string | null
  /** The task that delegated this one, and the root of its tree; null unless the task was delegated. */
  parent_task_id: string | null
  root_task_id: string | null
  depth: number
  retried_from: string | null
  concurrency_key: string | null
  /** The credential that created it; null for a task of a schedule. */
  credential_id: string | null
  worker_id: string | null
  job_id: string | null
  job_attempt: number
  /** `held`: it occupies one of its agent's `max_concurrent_tasks`. `wanted`: it continues as soon as one is free. */
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
  /** Null after the agent was deleted. */
  agent: LockedAgent | null
  org_id: string | null
  /** Raised by each change of the organization's model providers; 0 before the first one. */
  providers_version: number
  /** The events of the task that the organization's active webhooks subscribe to; null for none. */
  subscriptions: string[] | null
  /** Its limits: of each, the lower one of the task's and of its agent's configuration. */
  budget: TaskLimits
  /** Whether a budget limits it: of the task, its agent, project, organization or credential. Read without a lock. */
  has_budget: boolean
  /** The reservation of the model call in flight, or what a waiting task needs; null for neither. */
  hold: Reservation | null
  /** Its budgets, once this transaction has locked them. */
  ledger?: BudgetLedger
  /** Tokens that the agent's credential has used in the running hour (decision D90). */
  tokens_used: number
  /** The time of the transaction. */
  now: string
  /**
   * The `created_at` of the events that the transaction writes: its time, or the time of the previous change if the
   * transaction waited for that one. So the timestamps of a task's events are monotonic.
   */
  event_at: string
}

export interface LockedAgent {
  name: string
  status: AgentState
  settles_to: string | null
  token_subject: string
  /** Maximum number of its tasks that run at the same time; null without a limit. */
  max_concurrent_tasks: number | null
  /** Whether its `last_activity` is less than a second old. */
  is_fresh: boolean | null
}

/**
 * What a run needs of its task and agent. The claim reads these large values once; later writes do not read them again.
 */
export interface TaskWork {
  id: string
  input: TaskInput
  /** The task's schema; null if the one of its agent's configuration applies. */
  output_schema: Record<string, unknown> | null
  timeout_seconds: number | null
  thread_id: string | null
  config: AgentConfig
  environment: Buffer | null
  metadata: Record<string, unknown>
  /** W3C Trace Context of the request that created it. */
  traceparent: string | null
  /** Settings of the caller for this task only; null without any. */
  caller: Caller | null
}

/** A tool that the caller of the task provides: the model calls it, and the task waits for the caller's result. */
export interface CallerTool {
  name: string
  description: string
  /** JSON Schema of the arguments, an object. */
  parameters: Record<string, unknown>
  /** Whether a call may be repeated after its lease ended without a result; `safe` by default. */
  safety?: ToolSafety
  /** JSON Schema that a result must match. */
  result_schema?: Record<string, unknown>
  /** How long a call waits for its result; by default as long as an approval. */
  timeout_seconds?: number
}

/** Settings of the caller for one task. Its limits can only lower those of the agent. */
export interface Caller {
  tools?: CallerTool[]
  /** Applies to the first model call from step `from_step` on. */
  tool_choice?: 'none' | 'auto' | 'required' | { name: string }
  from_step?: number
  /**
   * The only tools that the model may call, by name; all if left out. The name of an MCP server or an OpenAPI document,
   * such as `github`, stands for all its tools.
   */
  allowed_tools?: string[]
  /** Added after the agent's system prompt. */
  instructions?: string
  max_output_tokens?: number
  temperature?: number
  effort?: Effort
  /** At most one tool call in each answer of the model, if its provider supports that. */
  parallel_tool_calls?: false
  /** Maximum number of tool calls of the task. A further call is not made, and the model reads that. */
  max_tool_calls?: number
  /** Of a delegated task: the maximum depth of its tree. */
  depth_max?: number
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
  /** Seconds until a pending approval expires, and what happens to its call then. */
  approval_timeout_seconds?: number
  approval_on_timeout?: ApprovalTimeout
  /** Agents that it may delegate tasks to, and the maximum depth of the tree. */
  delegates?: { agent_id: string; version?: number; name?: string; description?: string }[]
  max_depth?: number
  /** Where its tasks run; see `remoteQueue`. */
  runtime?: { kind?: unknown; queue?: unknown }
}

/**
 * The queue of the remote workers that run an agent's tasks; undefined if Cadre runs them. Agents of older versions may
 * have any value in `runtime`.
 */
export function remoteQueue({ runtime }: Pick<AgentConfig, 'runtime'>): string | undefined {
  return runtime?.kind === 'remote' && typeof runtime.queue === 'string' ? runtime.queue : undefined
}

/** Prefix of lease ids. A task that a remote worker runs has one as its `worker_id`. */
const leasePrefix = 'work_'

/** Whether a remote worker runs the task, or the task is offered to remote workers. */
export function isRemote({ worker_id, wait }: Pick<LockedTask, 'worker_id' | 'wait'>): boolean {
  return worker_id?.startsWith(leasePrefix) === true || wait?.reason === 'worker'
}

/** Why a task waits, since when, and until when if that is known. */
export interface Wait {
  reason: WaitReason
  since: string
  until: string | null
  approval_ids: string[]
  /** Open tool calls that the caller makes; left out if there are none. */
  tool_call_ids?: string[]
  /** The steps that the caller can answer: those calls, and questions; left out if there are none. */
  step_ids?: string[]
  /** Delegated tasks that have not ended; left out if there are none. */
  child_task_ids?: string[]
  /** With the reason `credential`: the credentials that must be connected first. */
  credential_ids?: string[]
  /** With the reason `worker`: the queue that the task waits in. */
  queue?: string
}

/** What a task has consumed. An unknown cost is null, never an estimate. */
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

/** Why a task failed. `code` is for programs, `message` for people. */
export interface TaskError {
  code: string
  message: string
  /** Whether the same task may succeed when it is retried later. */
  retryable: boolean
  step_id: string | null
}

export interface TaskOutput {
  content: string
  data: unknown
  /** Files that the task made; left out if there are none. */
  artifacts?: TaskArtifact[]
}

/** A file that a tool stored as a result of the task. */
export interface TaskArtifact {
  file_id: string
  name: string
  media_type: string
  bytes: number
  sha256: string
}

/** Who canceled the task, and how. */
export interface CancelRequest {
  reason: string | null
  mode: 'graceful' | 'force'
  user_id: string
}

/** A step of the journal. */
export interface Step {
  task_id: string
  index: number
  id: string
  agent_id: string
  type: StepType
  status: StepState
  /** How many times it was started. */
  attempt: number
  /** How many of those starts failed at the provider. */
  failures: number
  name: string
  input: unknown
  output: unknown
  error: { code: string; message: string; retryable: boolean } | null
  model: string | null
  usage: unknown
  /** Of a completed model call: the turn as its provider wrote it, encrypted, in base64; see `turns.ts`. */
  turn?: string | null
}

/** The `input` of a tool call's step, or of its approval's step. */
export interface CallInput {
  tool_call_id: string
  arguments: unknown
  /** How the call may be repeated after a crash, as decided when it was started. */
  safety?: 'safe' | 'keyed' | 'unsafe'
  /** The attempt of unknown outcome that a person allowed to repeat. */
  repeat?: number
  /** Of an approval's step: its id. */
  approval_id?: string
  /** Of `wait`, and of a call that the caller makes: the deadline. */
  until?: string
  /** The call is made outside the engine: by a process that claims it, or by the caller of the task. */
  is_callers?: true
  /**
   * Of such a call: the tool belongs to the project, so processes of the project make the call, not the caller of the
   * task.
   */
  is_projects?: true
  /** The call is a delegated task of another agent; its id. */
  child_task_id?: string
  /** The credential whose token the call waits for. The call was not made yet. */
  waits_for?: string
  /** Of a remote worker's call: the number of the claim that started it. */
  claim?: number
  /** The remote worker makes the call and reports its result. */
  is_workers?: true
}

/** A part of a message. */
export type MessagePart = TextPart | FilePart

/** A message that a person sent to the task, and the step that reads it first. */
export interface ReadMessage {
  content: string
  /** Set if the message has files; `content` is then its text for readers that take only text. */
  parts: MessagePart[] | null
  before_step: number
}

/** A tool call for processes outside the engine to claim. */
export interface NewToolCall {
  /** `call_` and the rest of its step's identifier. */
  id: string
  step_index: number
  name: string
  safety: ToolSafety
  expires_at: string | null
}

/** An offer of a task to the remote workers of a queue. */
export interface NewWork {
  queue: string
}

/** A tool call that becomes a task of another agent. */
export interface NewDelegation {
  child_task_id: string
  step_index: number
  agent_id: string
  /** Null for the newest version. */
  agent_version: number | null
  /** Maximum depth of the tree, set by its root. */
  depth_max: number
  input: TaskInput
}

/** A question to a person about a tool call. */
export interface NewApproval {
  id: string
  step_id: string
  step_index: number
  kind: ApprovalKind
  tool: string
  arguments: unknown
  /** JSON Schema for edited arguments; null if the call cannot be edited. */
  parameters: Record<string, unknown> | null
  call_hash: string
  on_timeout: ApprovalTimeout
  expires_at: string | null
}

/** A change of one locked task. Members that are left out stay as they are. */
export interface TaskChange {
  task: LockedTask
  status?: TaskState
  wait?: Wait | null
  output?: TaskOutput | null
  error?: TaskError
  usage?: TaskUsage
  /** A worker claims the task: a new fencing number, and the attempt of the job that it fetched. */
  claimed?: { worker_id: string; job_attempt: number }
  /** Raises `task.writes`, the number of writes of the claim. */
  counted?: boolean
  crashes?: number
  cancel?: CancelRequest
  expires_at?: string | null
  /**
   * What happens to its job and to its worker's hold on the task.
   * - `end` removes the job of this claim.
   * - `forget` leaves the job: the worker that fetches it sees that the task names another one.
   * - `back` lets any worker fetch the job again at its old place.
   * - `again` replaces the job by a delayed one.
   * - `first` creates a job for a task without one.
   */
  job?: { kind: 'end' | 'forget' | 'back' } | { kind: 'again' | 'first'; start_after: Date | undefined }
  /** Its share of the agent's `max_concurrent_tasks`; if left out, it keeps the share for as long as its job. */
  slot?: LockedTask['slot']
  steps?: Step[]
  /** Marks all new messages as read before the step of this index, and resets `unseen`. */
  read?: { before_step: number }
  /** Raises `unseen`: one more change that its worker has not read. */
  unseen?: true
  /** Questions to people. */
  approvals?: NewApproval[]
  /** Tool calls that the caller makes. */
  tool_calls?: NewToolCall[]
  /** Tasks for other agents. */
  delegations?: NewDelegation[]
  /** Offers the task to the remote workers of a queue. */
  offer?: NewWork
  events?: { type: TaskEventType; data: Record<string, unknown> }[]
  logs?: Omit<AgentLogEntry, 'agent_id' | 'task_id'>[]
  /** Settings that a model does not support; each is logged once per version of the agent. */
  warnings?: CallWarning[]
  /** Values of environment variables, which must not appear in its logs (decision D48). */
  secrets?: readonly string[]
  /** Webhook events about its agent. */
  outbox?: EventOf<EventName>[]
  consumed?: Consumption
  /** Ended calls, for the usage by the hour. */
  calls?: CallUse[]
  /** The new reservation; if left out, the old one stays until its call has ended. */
  hold?: Reservation | null
}

/** A setting that a model does not support as it was requested. */
export interface CallWarning {
  /** The name of the model in the configuration. */
  model: string
  /** The member of the configuration (`temperature`), or the name that the provider's library has for the feature. */
  feature: string
  message: string
}

/** What an agent consumed (spec 2.8). */
export interface Consumption {
  model_calls?: number
  tool_calls?: number
  input_tokens?: number
  output_tokens?: number
  /** Bytes. */
  network_in?: number
  network_out?: number
  /** Seconds of one core, and bytes times seconds, by the rule of docs/guides/metrics.md. */
  cpu_seconds?: number
  memory_byte_seconds?: number
  cpu_seconds_available?: number
  memory_byte_seconds_available?: number
  stored_bytes?: number
}

/** A call of a model or of a tool, as the hourly usage counts it. */
export interface CallUse {
  /** `provider/model` as the provider names it; undefined for a call of a tool. */
  model?: string
  tool?: string
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  /** Null if the price is unknown. */
  cost_usd: number | null
  /** CPU seconds of a program in the sandbox. */
  sandbox_seconds?: number
}

/** Limits of one task; null or left out for no limit. */
export interface TaskLimits {
  max_cost_usd?: number | null
  max_tokens?: number | null
  max_steps?: number | null
  max_tool_calls?: number | null
}

/**
 * A limit and its usage in the current window. Costs are whole billionths of a dollar. Tasks of one transaction share
 * these objects and change them in place.
 */
export interface BudgetState {
  /** Null for the limits of a task. */
  id: string | null
  scope: BudgetScope | 'task'
  subject: string
  max_cost: number | null
  max_tokens: number | null
  /** The percentage of a limit at which a warning is sent. */
  warn_percent: number
  spent_cost: number
  spent_tokens: number
  /** Reserved for calls in flight. */
  held_cost: number
  held_tokens: number
  window_start: string
  resets_at: string | null
  /** Whether the warning was sent. */
  warned: boolean
  /** Whether it must be written. */
  changed: boolean
}

/** What is reserved for a call in flight, the same amount in each of the budgets. Stored as `task.hold`. */
export interface Reservation {
  tokens: number
  cost_usd: number
  budget_ids: string[]
  /**
   * Of a task whose worker released it while its calls were in flight: the amount stays reserved until those calls are
   * settled or the task ends, also while another worker runs the task.
   */
  late?: true
  /** Of a task that waits for a budget: what it needs to continue. */
  needs?: Needs
}

/**
 * What a call needs: its estimated input tokens and its maximum output tokens; undefined if the agent sets no maximum.
 */
export interface Need {
  input_tokens: number
  max_output_tokens: number | undefined
  /** Null if the price is unknown. */
  price: ModelPrice | null
}

/** What a waiting task needs to continue: steps and tool calls within its limits, and a model call. */
export interface Needs {
  steps: number
  tool_calls: number
  call?: Need
}

/** The budgets of a locked task, and what this transaction did with them. */
export interface BudgetLedger {
  /** Includes the task's limits. */
  budgets: BudgetState[]
  /** Whether its reservation was released and its usage was counted. */
  settled: boolean
  /** Budgets that reached their warning threshold in this transaction. */
  near: BudgetState[]
}
