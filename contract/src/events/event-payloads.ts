import Type, { type Static } from 'typebox'
import { credentialStates } from '../resources/credential-states.ts'
import { agentStates } from '../resources/agent-lifecycle.ts'
import { severities, testEventName, type OutboxEventName } from './events.ts'
import { Choice, Named, Nullable, Timestamp } from '../core/schemas.ts'
import { EventOutput, taskEventPayloads } from './task-event-payloads.ts'

const user_id = Type.String({ description: 'The user who caused the event, or who owns the resource.' })

const project = Type.Object({
  id: Type.Integer({ minimum: 1 }),
  name: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
})

const agent = Named(
  'EventAgent',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    project_id: Type.String({ description: '`proj_42`.' }),
    status: Choice(agentStates, { description: 'The state after the event.' }),
  }),
)

/** A finished task in the events of its agent. */
function endedTask<const Status extends string>(...statuses: Status[]) {
  return Type.Object(endedMembers(...statuses))
}

function endedMembers<const Status extends string>(...statuses: Status[]) {
  return {
    id: Type.String(),
    status: Choice(statuses),
    started_at: Nullable(Timestamp),
    finished_at: Timestamp,
    duration_seconds: Type.Number({
      minimum: 0,
      description: 'Seconds from start to end; 0 if the task never started.',
    }),
  }
}

const error = { code: Type.String(), message: Type.String() }

/** `data` of every webhook event (spec 6, decisions D93 and D94). */
export const eventPayloads = {
  'project.created': Type.Object({ project, user_id }),
  'project.updated': Type.Object({
    project,
    changed: Type.Array(Choice(['name']), { description: 'Members that changed.' }),
    user_id,
  }),
  'project.deleted': Type.Object({
    project: Type.Object({ id: Type.Integer({ minimum: 1 }), name: Type.String() }),
    user_id,
  }),
  'agent.launched': Type.Object({
    agent,
    trigger: Choice(['create', 'start', 'restart', 'launch'], {
      description: 'The action that made the agent `running`.',
    }),
    user_id,
  }),
  'agent.completed': Type.Object({
    agent,
    task: Type.Object({ ...endedMembers('completed'), output: EventOutput }),
    truncated: Type.Boolean({ description: 'Whether the output was cut or omitted because of its size.' }),
  }),
  'agent.failed': Type.Object({
    agent,
    task: Nullable(endedTask('failed', 'expired')),
    error: Type.Object(error),
  }),
  'agent.stopped': Type.Object({
    agent,
    reason: Choice(['requested', 'restart', 'deleted'], { description: 'Why the agent no longer runs.' }),
    user_id,
  }),
  'error.occurred': Type.Object({
    error: Type.Object({
      ...error,
      severity: Choice(severities),
      affected_resources: Type.Array(Type.String(), { description: 'Identifiers of the affected resources.' }),
    }),
    user_id,
    request_id: Nullable(
      Type.String({ description: 'The request that failed, or that started the failed work; null if there is none.' }),
    ),
  }),
  'credential.expired': Type.Object({
    credential: Type.Object({
      id: Type.String(),
      name: Type.String(),
      project_id: Type.String({ description: '`proj_42`.' }),
      status: Choice(credentialStates),
    }),
    error: Type.Object(error),
  }),
  [testEventName]: Type.Object({
    message: Type.String(),
    webhook_id: Type.String(),
    user_id: Type.String({ description: 'The user who requested the test.' }),
  }),
  ...taskEventPayloads,
} satisfies Record<OutboxEventName, unknown>

/** `data` of an event by its name. */
export type EventData<Name extends OutboxEventName = OutboxEventName> = Static<(typeof eventPayloads)[Name]>

/** An event type with its `data`. */
export type EventOf<Name extends OutboxEventName> = { [N in Name]: { type: N; data: EventData<N> } }[Name]

/** `data` of `error.occurred` (spec 6). */
export type ErrorOccurred = EventData<'error.occurred'>
