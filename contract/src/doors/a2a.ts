import Type from 'typebox'
import { defineOperation, type Operation } from '../core/operation.ts'

/** Bounds of the A2A door; lengths count characters, sizes bytes. */
export const a2aBounds = {
  body_bytes: 8 * 1024 * 1024,
  message_id: 255,
  context_id: 255,
  parts: 100,
  metadata_bytes: 8192,
  page_limit: 100,
  page_limit_default: 50,
  /** Configurations of push notifications that a task has. */
  push_configs: 10,
  push_token: 1024,
  push_credentials: 4096,
  /** Tasks that `totalSize` counts at most. */
  counted: 100_000,
} as const

/** What an agent's card names as understood: a data part that answers an approval. */
export const approvalExtension = 'urn:cadre:a2a:approval:1'

const common = {
  error_format: 'a2a_http',
  tag: 'A2A',
  credentials: ['api_key', 'token'],
  extension: true,
} as const

// Read by the door itself, which names the member at fault.
const any = Type.Unsafe<unknown>({ 'x-verbatim': true })
const openBody = (...names: string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Optional(any)])), { additionalProperties: true })
const json = (description: string, status = 200) => ({
  status,
  description,
  schema: Type.Object({}, { additionalProperties: true }),
})
const agent = { agent_id: { description: 'The agent.', example: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4' } }
const task = { ...agent, task_id: { description: 'The task.', example: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4' } }
const config = { ...task, config_id: { description: 'The configuration.', example: 'mine' } }
const base = '/a2a/agents/{agent_id}'

const text = Type.Optional(Type.String({ maxLength: 1000 }))
const historyLength = Type.Optional(Type.Integer({ minimum: 0, maximum: 2_147_483_647 }))

/** What sending a message may be refused for. */
const sending = [
  'agent_not_found',
  'agent_not_running',
  'task_not_found',
  'task_already_finished',
  'queue_full',
  'budget_exceeded',
  'approval_already_resolved',
] as const

export const sendMessage = defineOperation({
  ...common,
  id: 'a2aSendMessage',
  method: 'POST',
  path: `${base}/message:send`,
  params: agent,
  summary: 'Send a message',
  description: 'Begins a task or continues one, and waits for its end or for what it asks.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: a2aBounds.body_bytes,
  body: openBody('message', 'configuration', 'metadata'),
  responses: [json('The task.')],
  problems: sending,
})
export const sendStreamingMessage = defineOperation({
  ...common,
  id: 'a2aSendStreamingMessage',
  method: 'POST',
  path: `${base}/message:stream`,
  params: agent,
  summary: 'Send a message and stream its task',
  description: 'Server-sent events, each a `StreamResponse`; their ids resume the stream.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: a2aBounds.body_bytes,
  body: openBody('message', 'configuration', 'metadata'),
  responses: [json('The events.')],
  problems: sending,
})
export const getTask = defineOperation({
  ...common,
  id: 'a2aGetTask',
  method: 'GET',
  path: `${base}/tasks/{task_id}`,
  params: task,
  query: Type.Object({ historyLength, tenant: text }),
  summary: 'Read a task',
  description: 'With its artifacts and its history.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The task.')],
  problems: ['agent_not_found', 'task_not_found'],
})
export const listTasks = defineOperation({
  ...common,
  id: 'a2aListTasks',
  method: 'GET',
  path: `${base}/tasks`,
  params: agent,
  query: Type.Object({
    contextId: text,
    status: text,
    pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: a2aBounds.page_limit })),
    pageToken: text,
    historyLength,
    statusTimestampAfter: text,
    includeArtifacts: Type.Optional(Type.Boolean()),
    tenant: text,
  }),
  summary: 'List tasks',
  description: 'Tasks of the agent, those whose status changed last first.',
  scope: 'watch_tasks',
  bucket: 'agents.list',
  responses: [json('A page of tasks.')],
  problems: ['agent_not_found'],
})
export const cancelTask = defineOperation({
  ...common,
  id: 'a2aCancelTask',
  method: 'POST',
  path: `${base}/tasks/{task_id}:cancel`,
  params: task,
  body: openBody('metadata'),
  body_optional: true,
  summary: 'Cancel a task',
  description: 'A call under way ends first; what took effect is in the metadata.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [json('The task.')],
  problems: ['agent_not_found', 'task_not_found', 'task_already_finished'],
})
export const subscribeToTask = defineOperation({
  ...common,
  id: 'a2aSubscribeToTask',
  method: 'POST',
  path: `${base}/tasks/{task_id}:subscribe`,
  params: task,
  body: openBody(),
  body_optional: true,
  idempotent: false,
  summary: 'Stream a task',
  description:
    'The task as it is, then what happens. With `Last-Event-ID` what came after that event instead, also after the end.',
  scope: 'watch_tasks',
  bucket: 'tasks.stream',
  responses: [json('The events.')],
  problems: ['agent_not_found', 'task_not_found', 'task_already_finished'],
})
/** The same by GET. */
export const getSubscribeToTask = defineOperation({
  ...common,
  id: 'a2aGetSubscribeToTask',
  method: 'GET',
  path: `${base}/tasks/{task_id}:subscribe`,
  params: task,
  summary: 'Stream a task',
  description: 'As by POST.',
  scope: 'watch_tasks',
  bucket: 'tasks.stream',
  responses: [json('The events.')],
  problems: ['agent_not_found', 'task_not_found', 'task_already_finished'],
})
export const createPushConfig = defineOperation({
  ...common,
  id: 'a2aCreateTaskPushNotificationConfig',
  method: 'POST',
  path: `${base}/tasks/{task_id}/pushNotificationConfigs`,
  params: task,
  body: openBody('id', 'url', 'token', 'authentication'),
  summary: 'Have a task push notifications',
  description: 'An id that the task has is replaced. Secrets are never shown again.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [json('The configuration.', 201)],
  problems: ['agent_not_found', 'task_not_found'],
})
export const getPushConfig = defineOperation({
  ...common,
  id: 'a2aGetTaskPushNotificationConfig',
  method: 'GET',
  path: `${base}/tasks/{task_id}/pushNotificationConfigs/{config_id}`,
  params: config,
  summary: 'Read a configuration of push notifications',
  description: 'Without its secrets.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The configuration.')],
  problems: ['agent_not_found', 'task_not_found'],
})
export const listPushConfigs = defineOperation({
  ...common,
  id: 'a2aListTaskPushNotificationConfigs',
  method: 'GET',
  path: `${base}/tasks/{task_id}/pushNotificationConfigs`,
  params: task,
  summary: 'List configurations of push notifications',
  description: 'All that the task has.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The configurations.')],
  problems: ['agent_not_found', 'task_not_found'],
})
export const deletePushConfig = defineOperation({
  ...common,
  id: 'a2aDeleteTaskPushNotificationConfig',
  method: 'DELETE',
  path: `${base}/tasks/{task_id}/pushNotificationConfigs/{config_id}`,
  params: config,
  summary: 'End push notifications',
  description: 'Nothing more is sent to it.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [{ status: 204, description: 'It is gone.' }],
  problems: ['agent_not_found', 'task_not_found'],
})
export const getExtendedAgentCard = defineOperation({
  ...common,
  id: 'a2aGetExtendedAgentCard',
  method: 'GET',
  path: `${base}/extendedAgentCard`,
  params: agent,
  summary: 'Read the extended card of an agent',
  description: 'Its card, with its tools among its skills.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The card.')],
  problems: ['agent_not_found'],
})

const publicCard = { ...common, credentials: [], scope: null, bucket: 'docs', method: 'GET' } as const
export const getAgentCard = defineOperation({
  ...publicCard,
  id: 'a2aGetAgentCard',
  path: `${base}/.well-known/agent-card.json`,
  params: agent,
  summary: 'Read the card of an agent',
  description: 'Of agents that are published to this door.',
  responses: [json('The card.')],
  problems: ['agent_not_found'],
})
export const getDefaultAgentCard = defineOperation({
  ...publicCard,
  id: 'a2aGetDefaultAgentCard',
  path: '/.well-known/agent-card.json',
  summary: 'Read the card of the default agent',
  description: 'The agent that the configuration of the service names.',
  responses: [json('The card.')],
  problems: ['agent_not_found'],
})

const rpc = {
  error_format: 'a2a',
  method: 'POST',
  path: base,
  params: agent,
  body_bytes: a2aBounds.body_bytes,
  body: openBody('jsonrpc', 'id', 'method', 'params'),
} as const

/** The same operation asked for by JSON-RPC: one path for all, what it takes in the body. */
function byRpc(operation: Operation): Operation {
  const { query: _, body_optional: __, ...rest } = operation
  return { ...rest, ...rpc, responses: [json('The response.')] }
}

/** What a request by JSON-RPC is that names no method. */
export const unknownRpc = defineOperation({
  ...common,
  ...rpc,
  id: 'a2aRpc',
  idempotent: false,
  summary: 'Call a method by JSON-RPC',
  description: 'The method decides what the credential must have.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The response.')],
  problems: ['agent_not_found'],
})

/** The methods of JSON-RPC. */
export const rpcMethods = {
  SendMessage: byRpc(sendMessage),
  SendStreamingMessage: byRpc(sendStreamingMessage),
  GetTask: byRpc({ ...getTask, idempotent: false }),
  ListTasks: byRpc({ ...listTasks, idempotent: false }),
  CancelTask: byRpc(cancelTask),
  SubscribeToTask: byRpc(subscribeToTask),
  CreateTaskPushNotificationConfig: byRpc(createPushConfig),
  GetTaskPushNotificationConfig: byRpc({ ...getPushConfig, idempotent: false }),
  ListTaskPushNotificationConfigs: byRpc({ ...listPushConfigs, idempotent: false }),
  DeleteTaskPushNotificationConfig: byRpc(deletePushConfig),
  GetExtendedAgentCard: byRpc({ ...getExtendedAgentCard, idempotent: false }),
}
export type A2aMethod = keyof typeof rpcMethods
