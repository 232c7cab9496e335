import type { Problem } from '#contract/core/problems.ts'
import type { ProjectFeed } from '../events/streams/project-stream-feed.ts'
import type { Bus } from '../events/streams/streams-bus.ts'
import type { Hub } from '../events/streams/streams-hub.ts'
import type { Sql } from '../platform/postgres/database.ts'
import type { CancelOutcome } from './journal/cancel.ts'
import type { TaskRow } from './journal/stored-task.ts'
import type { MessageOutcome, NewMessage } from './commands/send-message.ts'
import type { ToolCallAnswer } from './commands/answer-tool-calls.ts'
import type { CreatedRow, NewTask } from './commands/new-task.ts'
import type { RemoteWork } from './remote/remote.ts'
import type { ToolCalls } from './dispatch/tool-call-claims.ts'
import type { Resolution } from './commands/resolve-approval.ts'
import type { CancelRequest } from './task.ts'

/**
 * The interface of the engine for the rest of the service. A function with a `tx` belongs to the caller's transaction
 * and takes effect with it: signals to workers are sent after the commit.
 */
export interface Engine {
  /** Resolves when tasks can be accepted: the queue's schema exists and the process listens for signals. */
  ready: Promise<void>
  isReady(): boolean
  /** The worker of this process. */
  worker_id: string
  /** Number of tasks that this process runs now. */
  runningTasks(): number
  /** Streams and waiting requests watch tasks here. */
  hub: Hub
  /** Streams watch projects here. */
  projects: ProjectFeed
  /** Stores a task, its first event and, if its agent may work, its job. */
  enqueue(tx: Sql, task: NewTask): Promise<void>
  /**
   * Does the same in a transaction of the engine, shared with tasks created at the same time, and returns the task's
   * row.
   * @throws `agent_not_found` if the agent was deleted meanwhile.
   */
  create(task: NewTask): Promise<CreatedRow>
  /** Whether `createAll` may store the task together with others. */
  mayShare(task: NewTask): boolean
  /**
   * Stores tasks that `mayShare` allows in the caller's transaction. Returns for each, in order, its row or the problem
   * `agent_not_found`.
   */
  createAll(tx: Sql, tasks: readonly NewTask[]): Promise<(TaskRow | Problem)[]>
  /**
   * Continues the deferred and queued tasks of an agent. Called after start and restart, and when an agent moves from
   * `updating` to `running`.
   */
  dispatchDeferred(tx: Sql, agent_id: string): Promise<void>
  /** Notifies watchers of the project, after the commit, that agents were created. */
  agentsMade(sql: Sql, agent_ids: readonly string[]): void
  /**
   * Called after pause (`agent_paused`), and after stop or an error (`agent_stopped`). No further step starts, and the
   * tasks wait at their last completed step. `agent_stopped` also aborts the model calls in flight.
   */
  deferTasks(tx: Sql, agent_id: string, reason: 'agent_paused' | 'agent_stopped'): Promise<void>
  /**
   * Called before an agent is deleted, in the same transaction. Cancels its open tasks. After the commit, a background
   * job removes the data of all its tasks; without their agent they are invisible at once.
   */
  cancelTasks(tx: Sql, agent_id: string): Promise<void>
  /** Cancels one task. */
  cancel(tx: Sql, task_id: string, request: CancelRequest): Promise<CancelOutcome>
  /**
   * Resolves an approval; the first resolution wins. Its task continues if its agent may work.
   * @throws `approval_already_resolved`, `approval_not_found`, and `validation_error` for edited arguments that do not
   *   match the tool's schema.
   */
  resolveApproval(tx: Sql, approval_id: string, resolution: Resolution): Promise<void>
  /**
   * Sends a message to a task. It answers an open `request_input`; without one, the next model call reads it. The
   * outcome is `finished` if the task has ended.
   */
  sendMessage(tx: Sql, task_id: string, message: NewMessage): Promise<MessageOutcome>
  /**
   * Stores the results of tool calls that the caller makes. The first result of a call wins. The task continues if
   * nothing else is open.
   * @throws `tool_call_already_resolved`; nothing is changed then.
   */
  answerToolCalls(tx: Sql, task_id: string, answers: readonly ToolCallAnswer[]): Promise<void>
  /** Tool calls that processes outside the engine claim. */
  toolCalls: ToolCalls
  /** Tasks that remote workers run under leases. */
  work: RemoteWork
  /** A budget was raised or deleted: after the commit, tasks that waited for it are checked again. */
  budgetsChanged(tx: Sql): void
  /** A credential was connected, changed or deleted: after the commit, tasks that waited for it are checked again. */
  credentialsChanged(tx: Sql): void
  /** Signals between processes, for parts outside the engine. */
  bus: Pick<Bus, 'notify' | 'on'>
  /** Whether no worker of any process was seen for 60 s (decision D102). */
  isSilent(): boolean
  /** Ends streams and waiting requests, so that the server can close; their clients reconnect to another process. */
  closeStreams(): void
  /** Stops claiming, lets steps in flight end within a bound, and releases the tasks. Everything else continues. */
  release(): Promise<void>
  /** Releases the tasks and closes the engine. */
  stop(): Promise<void>
}
