import Type from 'typebox'
import { defineOperation, type Operation } from '../core/operation.ts'

/** Bounds of the A2A protocol. Lengths count characters, sizes count bytes. */
export const a2aBounds = {
  body_bytes: 8 * 1024 * 1024,
  message_id: 255,
  context_id: 255,
  parts: 100,
  metadata_bytes: 8192,
  page_limit: 100,
  page_limit_default: 50,
  /** Push notification configurations per task. */
  push_configs: 10,
  push_token: 1024,
  push_credentials: 4096,
  /** Maximum of `totalSize`; further tasks are not counted. */
  counted: 100_000,
} as const

/** Extension in the agent card: a data part can resolve an approval. */
export const approvalExtension = 'urn:cadre:a2a:approval:1'

const common = {
  error_format: 'a2a_http',
  tag: 'A2A',
  credentials: ['api_key', 'token'],
  extension: true,
} as const

// The routes of the protocol validate the body and name the invalid member.
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

/** Problems of sending a message. */
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
  description: 'Starts or continues a task, and waits until it ends or asks for input.',
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
  description: 'Server-sent events, each a `StreamResponse`. Send the last event id as `Last-Event-ID` to resume.',
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
  description: 'The task with its artifacts and history.',
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
  description: 'Tasks of the agent, latest status change first.',
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
  description: 'A call in progress ends first. The metadata lists the calls that took effect.',
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
    'The current task, then its events. With `Last-Event-ID` only the events after that one, even if the task has ended.',
  scope: 'watch_tasks',
  bucket: 'tasks.stream',
  responses: [json('The events.')],
  problems: ['agent_not_found', 'task_not_found', 'task_already_finished'],
})
/** `subscribeToTask` with method GET. */
export const getSubscribeToTask = defineOperation({
  ...common,
  id: 'a2aGetSubscribeToTask',
  method: 'GET',
  path: `${base}/tasks/{task_id}:subscribe`,
  params: task,
  summary: 'Stream a task',
  description: 'Same as with POST.',
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
  summary: 'Create a push notification configuration',
  description: 'A configuration with the same id is replaced. Secrets are never shown again.',
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
  summary: 'Read a push notification configuration',
  description: 'The configuration without its secrets.',
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
  summary: 'List push notification configurations',
  description: 'All configurations of the task.',
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
  summary: 'Delete a push notification configuration',
  description: 'No more notifications are sent to its URL.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [{ status: 204, description: 'The configuration is deleted.' }],
  problems: ['agent_not_found', 'task_not_found'],
})
export const getExtendedAgentCard = defineOperation({
  ...common,
  id: 'a2aGetExtendedAgentCard',
  method: 'GET',
  path: `${base}/extendedAgentCard`,
  params: agent,
  summary: 'Read the extended card of an agent',
  description: 'The card with the tools of the agent as skills.',
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
  description: 'Only for agents that are published to A2A.',
  responses: [json('The card.')],
  problems: ['agent_not_found'],
})
export const getDefaultAgentCard = defineOperation({
  ...publicCard,
  id: 'a2aGetDefaultAgentCard',
  path: '/.well-known/agent-card.json',
  summary: 'Read the card of the default agent',
  description: 'The agent that the configuration of the service names as default.',
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

/** The operation as a JSON-RPC method: all share one path, and the body has the parameters. */
function byRpc(operation: Operation): Operation {
  const { query: _, body_optional: __, ...rest } = operation
  return { ...rest, ...rpc, responses: [json('The response.')] }
}

/** The operation of a JSON-RPC request without a known method. */
export const unknownRpc = defineOperation({
  ...common,
  ...rpc,
  id: 'a2aRpc',
  idempotent: false,
  summary: 'Call a method by JSON-RPC',
  description: 'The method decides which scope the credential needs.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The response.')],
  problems: ['agent_not_found'],
})

/** The JSON-RPC methods. */
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
