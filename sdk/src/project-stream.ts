import type { AgentState, TaskEventType, TaskState } from './contract.ts'
import { readEvents, type StreamOptions } from './event-source.ts'
import type { Http } from './http.ts'

/** The state of a project at the start of a connection. With `resumed: false` events may be missing, so read lists again. */
export interface ProjectSnapshot {
  type: 'project.snapshot'
  project_id: string
  created_at: string
  data: {
    /** Open tasks by state, each up to 10,000. */
    tasks: Partial<Record<TaskState, number>>
    agents: Partial<Record<AgentState, number>>
    resumed: boolean
  }
}

/** An event of a task without its data; read the task for details. */
export interface ProjectTaskEvent {
  type: TaskEventType
  sequence: number
  task_id: string
  agent_id: string
  /** State of the task when the event was sent: it may be ahead of the event. */
  status: TaskState
  created_at: string
}

/** The status of an agent after a change. It is not stored: after a reconnect the snapshot has the counts. */
export interface AgentStatus {
  type: 'agent.status'
  agent_id: string
  status: AgentState
  created_at: string
}

/** To resume later with a new stream: `onEventId` gets each position, and `lastEventId` starts a stream after it. */
export interface ProjectStreamOptions extends StreamOptions {
  lastEventId?: string | undefined
  onEventId?: ((id: string) => void) | undefined
}

export type ProjectStreamEvent = ProjectSnapshot | ProjectTaskEvent | AgentStatus

/**
 * Events of all tasks of a project, each once and in order within a task; reconnects as needed. It does not end: leave the
 * loop, or abort `signal`.
 */
export async function* projectEvents(
  http: Http,
  path: string,
  { lastEventId, onEventId, ...options }: ProjectStreamOptions = {},
): AsyncGenerator<ProjectStreamEvent, void, undefined> {
  for await (const { id, data } of readEvents(http, { path, after: lastEventId, isDone: () => false }, options)) {
    yield JSON.parse(data) as ProjectStreamEvent
    // After `yield`, so that a reader that stops while it handles an event gets it again.
    if (id !== undefined) onEventId?.(id)
  }
}
