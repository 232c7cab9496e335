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
 * What the rest of the service asks of the engine. Everything that takes a `tx` belongs to the caller's transaction and
 * takes effect with it: signals to workers go out after the commit.
 */
export interface Engine {
  /** Resolves when tasks can be accepted: the queue's schema stands and signals are listened for. */
  ready: Promise<void>
  isReady(): boolean
  /** The worker of this process. */
  worker_id: string
  /** Tasks that this process works on now. */
  runningTasks(): number
  /** Where streams and waits watch tasks. */
  hub: Hub
  /** Where streams watch projects. */
  projects: ProjectFeed
  /** Stores a task, its first event and, where its agent may work, its job. */
  enqueue(tx: Sql, task: NewTask): Promise<void>
  /**
   * Does the same in its own transaction, shared with tasks created at the same time, and returns the task's row.
   * Throws `agent_not_found` where the agent was deleted meanwhile.
   */
  create(task: NewTask): Promise<CreatedRow>
  /** Whether a task may be stored by `createAll`, with others. */
  mayShare(task: NewTask): boolean
  /** Stores such tasks in the caller's transaction: of each, in their order, its row, or `agent_not_found`. */
  createAll(tx: Sql, tasks: readonly NewTask[]): Promise<(TaskRow | Problem)[]>
  /** After start and restart, and whenever an agent has settled into running: its parked and queued tasks go on. */
  dispatchDeferred(tx: Sql, agent_id: string): Promise<void>
  /** Agents were created: those who watch their project learn of it after the commit. */
  agentsMade(sql: Sql, agent_ids: readonly string[]): void
  /**
   * After pause (`agent_paused`) and stop or error (`agent_stopped`): no further step begins; on stop the model call in
   * flight is aborted. The tasks wait at their last finished step.
   */
  deferTasks(tx: Sql, agent_id: string, reason: 'agent_paused' | 'agent_stopped'): Promise<void>
  /**
   * Before an agent is deleted, in the same transaction: its open tasks are canceled, and what is kept of all of them is
   * purged in the background after the commit. Without their agent they are invisible at once.
   */
  cancelTasks(tx: Sql, agent_id: string): Promise<void>
  /** Cancels one task. */
  cancel(tx: Sql, task_id: string, request: CancelRequest): Promise<CancelOutcome>
  /**
   * Answers an approval: the first answer wins. Its task goes on where its agent may work. Throws the problems
   * `approval_already_resolved` and `validation_error`.
   */
  resolveApproval(tx: Sql, approval_id: string, resolution: Resolution): Promise<void>
  /**
   * Sends a message to a task that has not ended: the answer to a `request_input` where it waits for one, else it is read
   * before the next call of the model. `finished` where the task has ended.
   */
  sendMessage(tx: Sql, task_id: string, message: NewMessage): Promise<MessageOutcome>
  /**
   * Gives the results of calls that a task's caller makes. The first result of a call wins. The task goes on where nothing
   * else is open. Throws `tool_call_already_resolved`, and then changes nothing.
   */
  answerToolCalls(tx: Sql, task_id: string, answers: readonly ToolCallAnswer[]): Promise<void>
  /** Calls of tools on the caller's side, to be claimed. */
  toolCalls: ToolCalls
  /** Tasks of agents whose code is on their owner's side, for workers that hold leases on them. */
  work: RemoteWork
  /** A budget was raised or taken away: tasks that waited for it are looked at after the commit. */
  budgetsChanged(tx: Sql): void
  /** A credential was connected, changed or removed: tasks that waited for it are looked at after the commit. */
  credentialsChanged(tx: Sql): void
  /** Signals between processes, for what is no task of the engine's. */
  bus: Pick<Bus, 'notify' | 'on'>
  /** Whether no worker of any process has been seen for 60 s (decision D102). */
  isSilent(): boolean
  /** Ends streams and waits, so that the server can close; their readers come back to another process. */
  closeStreams(): void
  /** Stops claiming, lets steps in flight end for a while, and gives tasks back; the rest goes on working. */
  release(): Promise<void>
  /** Hands tasks back and closes. */
  stop(): Promise<void>
}
