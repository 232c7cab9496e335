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
