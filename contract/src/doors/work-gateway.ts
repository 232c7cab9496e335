import Type from 'typebox'
import { defineOperation, type Operation } from '../core/operation.ts'
import { projectParameter } from '../core/schemas.ts'
import { openaiBounds } from './openai.ts'
import { mcpBounds } from './mcp.ts'

/** Bounds of the model gateway and of the tool gateway for remote workers. */
export const gatewayBounds = {
  /** Body of a request: every call sends the whole conversation. */
  body_bytes: openaiBounds.body_bytes,
  /** Calls of models and tools that run at the same time for a task. */
  calls_at_once: 32,
  /** Poll interval for a call that waits for a person, in milliseconds. */
  poll_ms: 500,
} as const

const base = '/api/v1/projects/{project_id}/work'
const common = {
  tag: 'Remote work',
  credentials: ['lease'],
  // The scope of the credential that claimed the task.
  scope: 'work:execute',
  bucket: 'work.lease',
  extension: true,
  params: { project_id: projectParameter },
  // A repeated call is answered from the journal.
  idempotent: false,
} as const
const any = Type.Unsafe<unknown>({ 'x-verbatim': true })
const openBody = (...names: string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Optional(any)])), { additionalProperties: true })
const json = (description: string) => ({
  status: 200,
  description,
  schema: Type.Object({}, { additionalProperties: true }),
})
const leaseProblems = ['project_not_found', 'lease_lost', 'task_canceled'] as const
const modelProblems = [
  ...leaseProblems,
  'agent_not_found',
  'task_already_finished',
  'budget_exceeded',
  'agent_not_running',
  'bad_gateway',
  'queue_full',
] as const

export const listWorkModels = defineOperation({
  ...common,
  id: 'listWorkModels',
  method: 'GET',
  path: `${base}/v1/models`,
  error_format: 'openai',
  summary: 'List the models of the task',
  description: "The models of the agent's configuration.",
  responses: [json('The models.')],
  problems: leaseProblems,
})
export const createWorkChatCompletion = defineOperation({
  ...common,
  id: 'createWorkChatCompletion',
  method: 'POST',
  path: `${base}/v1/chat/completions`,
  error_format: 'openai',
  summary: 'Call a model with Chat Completions',
  description:
    'The call is a step of the task: it is budgeted, charged and traced, and answered from the journal if it is repeated after a crash.',
  body_bytes: gatewayBounds.body_bytes,
  body: openBody('model', 'messages', 'tools', 'tool_choice', 'response_format', 'metadata', 'stop'),
  responses: [json('The completion.')],
  problems: modelProblems,
})
export const createWorkResponse = defineOperation({
  ...common,
  id: 'createWorkResponse',
  method: 'POST',
  path: `${base}/v1/responses`,
  error_format: 'openai',
  summary: 'Call a model with Responses',
  description: 'Like Chat Completions, with the Responses API.',
  body_bytes: gatewayBounds.body_bytes,
  body: openBody('model', 'input', 'tools', 'tool_choice', 'text', 'metadata', 'reasoning', 'include'),
  responses: [json('The response.')],
  problems: modelProblems,
})
export const callWorkMcp = defineOperation({
  ...common,
  id: 'callWorkMcp',
  method: 'POST',
  path: `${base}/mcp`,
  error_format: 'mcp',
  summary: "Call the agent's tools",
  description: "Serves the agent's tools as an MCP server. Calls are journaled, and approvals and tool policies apply.",
  body_bytes: mcpBounds.body_bytes,
  responses: [
    { status: 200, description: 'The response to the message, or a stream.', media_type: 'application/json' },
  ],
  problems: leaseProblems,
})

/** Operations of the gateway. They are not among `operations`, because other specifications define their bodies. */
export const workGatewayOperations: readonly Operation[] = [
  listWorkModels,
  createWorkChatCompletion,
  createWorkResponse,
  callWorkMcp,
] as Operation[]
