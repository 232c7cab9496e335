import type { AgentState } from './agent-lifecycle.ts'
import { projectId } from './project-id.ts'

/** Events that webhooks may subscribe to (spec 6). */
export const eventNames = [
  'project.created',
  'project.updated',
  'project.deleted',
  'agent.launched',
  'agent.completed',
  'agent.failed',
  'agent.stopped',
  'error.occurred',
] as const

export type EventName = (typeof eventNames)[number]

/** An agent as events carry it (decision D93). */
export function eventAgent(agent: { id: string; name: string; project_id: number; status: AgentState }) {
  const { id, name, project_id, status } = agent
  return { id, name, project_id: projectId(project_id), status }
}

/** How bad an `error.occurred` is (decision D94). */
export const severities = ['low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof severities)[number]

/** `data` of `error.occurred` (spec 6). */
export interface ErrorOccurred {
  error: { code: string; message: string; severity: Severity; affected_resources: string[] }
  /** Who caused it, or owns what failed. */
  user_id: string
  /** The request that failed, or that started the task; null where there was none. */
  request_id: string | null
}
