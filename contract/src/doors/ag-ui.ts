import Type from 'typebox'
import { defineOperation } from '../core/operation.ts'

/** Bounds of the AG-UI protocol. Lengths count characters, sizes count bytes. */
export const aguiBounds = {
  body_bytes: 8 * 1024 * 1024,
  messages: 2000,
  /** Identifier of a thread or a run. */
  id: 255,
  interrupts: 100,
  /** Context, state and forwarded properties that are stored with a task. */
  context_bytes: 8192,
  /** The same if the agent reads them. */
  context_read_bytes: 65_536,
} as const

const common = { error_format: 'agui', tag: 'AG-UI', credentials: ['api_key', 'token'], extension: true } as const
const any = Type.Unsafe<unknown>({ 'x-verbatim': true })
const openBody = (...names: string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Optional(any)])), { additionalProperties: true })
const json = (description: string) => ({
  status: 200,
  description,
  schema: Type.Object({}, { additionalProperties: true }),
})
const agent = { agent_id: { description: 'The agent.', example: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4' } }
const run = { ...agent, run_id: { description: 'The run, by the identifier that its client chose.', example: 'run-1' } }
const base = '/agui/agents/{agent_id}'

export const startRun = defineOperation({
  ...common,
  id: 'aguiRun',
  method: 'POST',
  path: base,
  params: agent,
  summary: 'Run an agent',
  description: 'Server-sent events of AG-UI. A run is a segment of a task.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: aguiBounds.body_bytes,
  body: openBody('threadId', 'runId', 'messages', 'tools', 'context', 'state', 'forwardedProps', 'resume'),
  responses: [json('The events.')],
  problems: [
    'agent_not_found',
    'agent_not_running',
    'queue_full',
    'budget_exceeded',
    'approval_already_resolved',
    'tool_call_already_resolved',
    'idempotency_key_reused',
  ],
})
export const getRun = defineOperation({
  ...common,
  id: 'aguiGetRun',
  method: 'GET',
  path: `${base}/runs/{run_id}`,
  params: run,
  summary: 'Stream a run again',
  description: 'All of its events, or those after `Last-Event-ID`.',
  scope: 'watch_tasks',
  bucket: 'tasks.stream',
  responses: [json('The events.')],
  problems: ['agent_not_found', 'response_not_found'],
})
export const cancelRun = defineOperation({
  ...common,
  id: 'aguiCancelRun',
  method: 'DELETE',
  path: `${base}/runs/{run_id}`,
  params: run,
  summary: 'Cancel a run',
  description: 'Cancels the task of the run. A run that has ended is returned unchanged.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [json('The task of the run.')],
  problems: ['agent_not_found', 'response_not_found'],
})
