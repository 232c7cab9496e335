import type { EventData } from '#contract/events/event-payloads.ts'
import type { Reply } from '../harness.ts'
import type { ExpectedEvent } from './written-events.ts'

/** An agent in its events. */
export type Agent = EventData<'agent.launched'>['agent']

/** What is to be written of agents that a user made, and of their tasks as they were answered (decisions D93 and D94). */
export function agentExpectations(user_id: string) {
  return {
    launched(agent: Agent, trigger: EventData<'agent.launched'>['trigger']): ExpectedEvent {
      const data = { agent: { ...agent, status: 'running' as const }, trigger, user_id }
      return { type: 'agent.launched', ...of(agent), data }
    },

    stopped(agent: Agent, reason: EventData<'agent.stopped'>['reason']): ExpectedEvent {
      const data = { agent: { ...agent, status: 'stopped' as const }, reason, user_id }
      return { type: 'agent.stopped', ...of(agent), data }
    },

    completed(agent: Agent, task: any): ExpectedEvent {
      return {
        type: 'agent.completed',
        ...of(agent),
        data: { agent, task: { ...ended(task), output: task.output }, truncated: false },
      }
    },

    /** Of a task that failed or expired: the events of its agent, and the error event. */
    failed(agent: Agent, { body: task, headers }: Reply, severity: 'medium' | 'critical'): ExpectedEvent[] {
      const { code, message } = task.error
      const error = { code, message, severity, affected_resources: [agent.id, task.id] }
      const request_id = headers.get('x-request-id')
      return [
        { type: 'agent.failed', ...of(agent), data: { agent, task: ended(task), error: { code, message } } },
        { type: 'error.occurred', ...of(agent), data: { error, user_id, request_id } },
      ]
    },

    /** Of an agent that went into `error`, because of these tasks where there were any. */
    broken(
      agent: Agent,
      { code, message }: { code: string; message: string },
      { tasks, request_id }: { tasks: string[]; request_id: string | null },
    ): ExpectedEvent[] {
      const error = { code, message, severity: 'high' as const, affected_resources: [agent.id, ...tasks] }
      const data = { agent: { ...agent, status: 'error' as const }, task: null, error: { code, message } }
      return [
        { type: 'agent.failed', ...of(agent), data },
        { type: 'error.occurred', ...of(agent), data: { error, user_id, request_id } },
      ]
    },
  }
}

function of({ id, project_id }: Agent) {
  return { project_id: Number(project_id.replace('proj_', '')), agent_id: id }
}

function ended({ id, status, started_at, finished_at }: any) {
  const duration_seconds = started_at === null ? 0 : (Date.parse(finished_at) - Date.parse(started_at)) / 1000
  return { id, status, started_at, finished_at, duration_seconds }
}
