import type { AgentState, TaskEventType, TaskState } from './contract.ts'
import { readEvents, type StreamOptions } from './event-source.ts'
import type { Http } from './http.ts'

/** How things stand when a connection is made. `resumed: false`: events may have been missed, so read lists again. */
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

/** Something that happened in a task; thin, so read what you want to know more of. */
export interface ProjectTaskEvent {
  type: TaskEventType
  sequence: number
  task_id: string
  agent_id: string
  /** Of the task, when the event was told: it may be ahead of the event. */
  status: TaskState
  created_at: string
}

/** The state of an agent after a change. It is not kept: after a lost connection the snapshot has the counts. */
export interface AgentStatus {
  type: 'agent.status'
  agent_id: string
  status: AgentState
  created_at: string
}

export type ProjectStreamEvent = ProjectSnapshot | ProjectTaskEvent | AgentStatus

/**
 * What happens to all tasks of a project, each event once and those of a task in order, over as many connections as it
 * takes. It does not end by itself: leave the loop, or abort `signal`.
 */
export async function* projectEvents(
  http: Http,
  path: string,
  options: StreamOptions = {},
): AsyncGenerator<ProjectStreamEvent, void, undefined> {
  for await (const { data } of readEvents(http, { path, isDone: () => false }, options))
    yield JSON.parse(data) as ProjectStreamEvent
}
