import type { Hub } from '../events/streams-hub.ts'
import type { Sql } from '../platform/database.ts'
import type { CancelOutcome } from './cancel.ts'
import type { NewTask } from './new-task.ts'
import type { CancelRequest } from './task-rows.ts'

/**
 * What the rest of the service asks of the engine. Everything that takes a `tx` belongs to the caller's transaction and
 * takes effect with it: signals to workers go out after the commit.
 */
export interface Engine {
  /** Resolves when tasks can be accepted: the queue's schema stands and signals are listened for. */
  ready: Promise<void>
  isReady(): boolean
  /** Where streams and waits watch tasks. */
  hub: Hub
  /** Stores a task, its first event and, where its agent may work, its job. */
  enqueue(tx: Sql, task: NewTask): Promise<void>
  /** After start and restart, and whenever an agent has settled into running: its parked and queued tasks go on. */
  dispatchParked(tx: Sql, agent_id: string): Promise<void>
  /**
   * After pause (`agent_paused`) and stop or error (`agent_stopped`): no further step begins; on stop the model call in
   * flight is aborted. The tasks wait at their last finished step.
   */
  parkTasks(tx: Sql, agent_id: string, reason: 'agent_paused' | 'agent_stopped'): Promise<void>
  /**
   * Before an agent is deleted, in the same transaction: its open tasks are canceled, and what is kept of all of them is
   * purged in the background after the commit. Without their agent they are invisible at once.
   */
  cancelTasks(tx: Sql, agent_id: string): Promise<void>
  /** Cancels one task (tasks 7). */
  cancel(tx: Sql, task_id: string, request: CancelRequest): Promise<CancelOutcome>
  /** Whether no worker of any process has been seen for 60 s (decision D102). */
  isSilent(): boolean
  /** Ends streams and waits, so that the server can close; their readers come back to another process. */
  closeStreams(): void
  /** Stops claiming, lets steps in flight end for a while, gives tasks back, and closes. */
  stop(): Promise<void>
}
