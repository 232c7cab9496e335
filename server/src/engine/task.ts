import type { AgentState } from '#contract/resources/agent-lifecycle.ts'
import type { BudgetScope } from '#contract/resources/budget-window.ts'
import type { EventOf } from '#contract/events/event-payloads.ts'
import type { EventName } from '#contract/events/events.ts'
import type { Effort, PromptCache, ServiceTier } from '#contract/models/model-dials.ts'
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
  /** The task that delegated it, and the one at the root of its tree; null where nothing delegated it. */
  parent_task_id: string | null
  root_task_id: string | null
  depth: number
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
  /** Raised by each change of the organization's own model providers; 0 where it never had one. */
  providers_version: number
  /** To which of a task's events active webhooks of the organization have subscribed; null where to none. */
  subscriptions: string[] | null
  /** Its own limits: those that it was given and those of its agent's configuration, the lower ones. */
  budget: TaskLimits
  /** Whether it has a budget, its own or one of its agent, project, organization or credential, as was seen without a lock. */
  has_budget: boolean
  /** What is reserved for the model call in flight, or what it waits for; null where that is nothing. */
  hold: Reservation | null
  /** Its budgets, where this transaction has locked them. */
  ledger?: BudgetLedger
  /** Tokens that the agent's credential has used in the running hour (decision D90). */
  tokens_used: number
  /** The moment of the transaction. */
  now: string
  /**
   * The `created_at` of the events that the transaction writes: its time, or that of the previous change where it
   * waited for that. So task event timestamps are monotonic.
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
  /** What its caller asked for this task alone; null where it asked for nothing. */
  caller: Caller | null
}

/** A tool on the side of a task's caller: the model calls it, and the task waits for the caller's result. */
export interface CallerTool {
  name: string
  description: string
  /** JSON Schema of the arguments, an object. */
  parameters: Record<string, unknown>
  /** What may be done where a lease of a call ends without a result; `safe` where nothing is said. */
  safety?: ToolSafety
  /** JSON Schema that a result has to fit. */
  result_schema?: Record<string, unknown>
  /** How long a call waits for its result; as long as an approval where nothing is said. */
  timeout_seconds?: number
}

/** What the caller of a task asked for it alone. Bounds may only be lower than those of the agent. */
export interface Caller {
  tools?: CallerTool[]
  /** For the first model call from `from_step` on. */
  tool_choice?: 'none' | 'auto' | 'required' | { name: string }
  from_step?: number
  /** The only tools that the model may call, by name; `github` stands for all of a server or document. All where it is left out. */
  allowed_tools?: string[]
  /** Added after the agent's system prompt. */
  instructions?: string
  max_output_tokens?: number
  temperature?: number
  effort?: Effort
  /** At most one call of a tool in each answer of the model, where its provider can be asked for that. */
  parallel_tool_calls?: false
  /** Calls of tools that the task may make in all; the model reads that one beyond them was not made. */
  max_tool_calls?: number
  /** Of a delegated task: how deep its tree may be. */
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
  /** Agents that it may give tasks, and how deep. */
  delegates?: { agent_id: string; version?: number; name?: string; description?: string }[]
  max_depth?: number
  /** Where its tasks run; see `remoteQueue`. */
  runtime?: { kind?: unknown; queue?: unknown }
}

/** The queue of workers on the side of an agent's owner, where they run its tasks. An older agent may have anything there. */
export function remoteQueue({ runtime }: Pick<AgentConfig, 'runtime'>): string | undefined {
  return runtime?.kind === 'remote' && typeof runtime.queue === 'string' ? runtime.queue : undefined
}

/** The beginning of names of leases, as `worker_id` of a task that a remote worker has. */
const leasePrefix = 'work_'

/** Whether a task is with a worker on the side of its agent's owner, or offered to them. */
export function isRemote({ worker_id, wait }: Pick<LockedTask, 'worker_id' | 'wait'>): boolean {
  return worker_id?.startsWith(leasePrefix) === true || wait?.reason === 'worker'
}

/** Why a task waits, since when, and until when where that is known. */
export interface Wait {
  reason: WaitReason
  since: string
  until: string | null
  approval_ids: string[]
  /** Open calls of tools on the caller's side; left out where there are none. */
  tool_call_ids?: string[]
  /** The steps that this task's caller can answer: those calls, and questions; left out where there are none. */
  step_ids?: string[]
  /** Tasks that it delegated and that have not ended; left out where there are none. */
  child_task_ids?: string[]
  /** Of the reason `credential`: those that must be connected first. */
  credential_ids?: string[]
  /** Of the reason `worker`: the queue that it waits in. */
  queue?: string
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
  /** Files that it made; left out where there are none. */
  artifacts?: TaskArtifact[]
}

/** A file that a tool kept as a result of the task. */
export interface TaskArtifact {
  file_id: string
  name: string
  media_type: string
  bytes: number
  sha256: string
}

/** Who asked to cancel, and how. */
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

/** What the journal holds of a tool call that a model asked for: the input of its step, or of its approval's. */
export interface CallInput {
  tool_call_id: string
  arguments: unknown
  /** How the call may be repeated after a crash, as it was when it was begun. */
  safety?: 'safe' | 'keyed' | 'unsafe'
  /** The attempt of unknown outcome that a person allowed to repeat. */
  repeat?: number
  /** Of an approval: which one. */
  approval_id?: string
  /** Of `wait`, and of a call of a caller's tool: until when. */
  until?: string
  /** The call is made on the caller's side: by a process that claims it, or by the caller of the task. */
  is_callers?: true
  /** Of such a call: the tool is the project's, so that processes of the project make the call, not the caller of the task. */
  is_projects?: true
  /** The call is a task of another agent. */
  child_task_id?: string
  /** The credential for whose token the call waits; it was not made yet. */
  waits_for?: string
  /** Of a remote worker: the number of the claim that began it. */
  claim?: number
  /** The worker makes the call, and gives its result. */
  is_workers?: true
}

/** What a message says in parts. */
export type MessagePart = TextPart | FilePart

/** A message that a person sent to the task, and the step that reads it first. */
export interface ReadMessage {
  content: string
  /** Where files are among what it says; `content` stands for them where only text can. */
  parts: MessagePart[] | null
  before_step: number
}

/** A call of a tool on the caller's side, to be claimed. */
export interface NewToolCall {
  /** `call_` and the rest of its step's identifier. */
  id: string
  step_index: number
  name: string
  safety: ToolSafety
  expires_at: string | null
}

/** An offer of a task to the workers of a queue. */
export interface NewWork {
  queue: string
}

/** A call that becomes a task of another agent. */
export interface NewDelegation {
  child_task_id: string
  step_index: number
  agent_id: string
  /** Null for the newest. */
  agent_version: number | null
  /** How deep the tree may be, as its root has it. */
  depth_max: number
  input: TaskInput
}

/** A question to a person about a call of a tool. */
export interface NewApproval {
  id: string
  step_id: string
  step_index: number
  kind: ApprovalKind
  tool: string
  arguments: unknown
  /** What edited arguments are checked against; null where calls cannot be edited. */
  parameters: Record<string, unknown> | null
  call_hash: string
  on_timeout: ApprovalTimeout
  expires_at: string | null
}

/** What is to become of one locked task. What is not given stays as it is. */
export interface TaskChange {
  task: LockedTask
  status?: TaskState
  wait?: Wait | null
  output?: TaskOutput | null
  error?: TaskError
  usage?: TaskUsage
  /** A worker takes the task: a new fencing number, and the attempt of the job it fetched. */
  claimed?: { worker_id: string; job_attempt: number }
  /** One more write of the claim: see `task.writes`. */
  counted?: boolean
  crashes?: number
  cancel?: CancelRequest
  expires_at?: string | null
  /**
   * What happens to its job and its worker's hold. `end` removes the job of this claim. `forget` leaves it: the worker
   * that fetches it finds that the task no longer names it. `back` lets any worker fetch it again at its old place.
   * `again` replaces it by a delayed job. `first` creates one where there is none.
   */
  job?: { kind: 'end' | 'forget' | 'back' } | { kind: 'again' | 'first'; start_after: Date | undefined }
  /** What it has of its agent's `max_concurrent_tasks`; without a word it keeps it for as long as its job. */
  slot?: LockedTask['slot']
  steps?: Step[]
  /** Messages that came meanwhile are read now, before the step of this index; nothing is unseen then. */
  read?: { before_step: number }
  /** One more thing that its worker has not seen. */
  unseen?: true
  /** People are asked. */
  approvals?: NewApproval[]
  /** The caller is asked to make calls. */
  tool_calls?: NewToolCall[]
  /** Other agents are given tasks. */
  delegations?: NewDelegation[]
  /** Workers on the side of the agent's owner are offered the task. */
  offer?: NewWork
  events?: { type: TaskEventType; data: Record<string, unknown> }[]
  logs?: Omit<AgentLogEntry, 'agent_id' | 'task_id'>[]
  /** What its model does not take as it was asked: logged once for each version of its agent. */
  warnings?: CallWarning[]
  /** What must not appear in its logs: values of environment variables (decision D48). */
  secrets?: readonly string[]
  /** Webhook events of its agent. */
  outbox?: EventOf<EventName>[]
  consumed?: Consumption
  /** Calls that ended, for the bill. */
  calls?: CallUse[]
  /** What is reserved from now on; without a word what was reserved stays until its call has ended. */
  hold?: Reservation | null
}

/** Something that was asked of a model and that it does not take as it was asked. */
export interface CallWarning {
  /** The name of the model in the configuration. */
  model: string
  /** The member of the configuration, or the provider library's name of a feature: `temperature`. */
  feature: string
  message: string
}

/** What was consumed for an agent (spec 2.8). */
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

/** A call of a model or of a tool, as it is counted by the hour. */
export interface CallUse {
  /** `provider/model` as the provider names it; undefined of a call of a tool. */
  model?: string
  tool?: string
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  /** Null where the price is not known. */
  cost_usd: number | null
  /** Of a program in the sandbox. */
  sandbox_seconds?: number
}

/** Limits of one task; null and absent: none. */
export interface TaskLimits {
  max_cost_usd?: number | null
  max_tokens?: number | null
  max_steps?: number | null
  max_tool_calls?: number | null
}

/**
 * A limit and what is used of it, in the window that runs. Costs are whole billionths of a dollar. The states of one
 * transaction are shared by its tasks, and changed in place.
 */
export interface BudgetState {
  /** Null of a task's own limits. */
  id: string | null
  scope: BudgetScope | 'task'
  subject: string
  max_cost: number | null
  max_tokens: number | null
  /** At which percentage of a limit a warning is sent. */
  warn_percent: number
  spent_cost: number
  spent_tokens: number
  /** What calls that are under way may use. */
  held_cost: number
  held_tokens: number
  window_start: string
  resets_at: string | null
  /** The warning that most of it is spent was sent. */
  warned: boolean
  /** To be written. */
  changed: boolean
}

/** What is reserved for a call that is under way: the same of each of the budgets. Kept as `task.hold`. */
export interface Reservation {
  tokens: number
  cost_usd: number
  budget_ids: string[]
  /**
   * Of a task that its worker let go while calls of it were being made: it stays reserved until they are settled, or the task ends,
   * also while another worker has the task.
   */
  late?: true
  /** Of a task that waits for a budget: what it needs to go on. */
  needs?: Needs
}

/** What a call will need: its input, estimated, and at most so much output; undefined where the agent sets no bound. */
export interface Need {
  input_tokens: number
  max_output_tokens: number | undefined
  /** Null where it is not known. */
  price: ModelPrice | null
}

/** What a waiting task needs to go on: steps and calls of tools within its own limits, and a call of a model. */
export interface Needs {
  steps: number
  tool_calls: number
  call?: Need
}

/** The budgets of a locked task, and what this transaction has done with them. */
export interface BudgetLedger {
  /** Its own limits are one of them. */
  budgets: BudgetState[]
  /** What it held is taken back, and what it used counted. */
  settled: boolean
  /** Those that came near their end by it. */
  near: BudgetState[]
}
