import Type from 'typebox'
import { defineOperation, type Operation } from '../core/operation.ts'

/** Bounds of the OpenAI protocol. Lengths count code points, sizes count bytes. */
export const openaiBounds = {
  /** Body of a request. Clients send the whole history each time. */
  body_bytes: 8 * 1024 * 1024,
  items: 2000,
  tools: 128,
  metadata_keys: 16,
  metadata_value: 512,
  /** Agents in the list of models. */
  models: 20_000,
  /** Characters of `User-Agent` that are stored with a task. */
  client: 100,
  conversation_items: 20,
  /** For so long, a repeated request without a key counts as a retry. */
  retry_minutes: 15,
  page_limit: 100,
} as const

/** Keys and tokens only: a browser sends cookies for any page, so they are refused. */
const common = {
  error_format: 'openai',
  tag: 'OpenAI',
  credentials: ['api_key', 'token'],
  extension: true,
} as const

/**
 * Another specification defines the bodies, so the routes of the protocol validate them and name the invalid
 * parameter. Members with `x-verbatim` keep their nulls.
 */
const any = Type.Unsafe<unknown>({ 'x-verbatim': true })
const openBody = (...names: string[]) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, Type.Optional(any)])), { additionalProperties: true })
const json = (description: string) => ({
  status: 200,
  description,
  schema: Type.Object({}, { additionalProperties: true }),
})

const model = { model: { description: 'An agent: its id, or `project/agent-name`.', example: 'support/helper' } }
const response = { response_id: { description: 'The response.', example: 'resp_01jcm3x5v8f9a2b4c6d8e0g2h4' } }
const conversation = {
  conversation_id: { description: 'The conversation.', example: 'conv_01jcm3x5v8f9a2b4c6d8e0g2h4' },
}

export const listModels = defineOperation({
  ...common,
  id: 'openaiListModels',
  method: 'GET',
  path: '/v1/models',
  summary: 'List agents as models',
  description: 'Every agent that the credential may run, as `project/agent-name`.',
  scope: 'watch_tasks',
  bucket: 'agents.list',
  responses: [json('The models.')],
  problems: [],
})
export const getModel = defineOperation({
  ...common,
  id: 'openaiGetModel',
  method: 'GET',
  path: '/v1/models/*',
  params: model,
  summary: 'Read an agent as a model',
  description: 'The name may contain a slash, encoded or not.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The model.')],
  problems: ['agent_not_found'],
})

const creating = [
  'agent_not_found',
  'agent_not_running',
  'queue_full',
  'budget_exceeded',
  'thread_not_found',
  'approval_already_resolved',
  'tool_call_already_resolved',
] as const

export const createChatCompletion = defineOperation({
  ...common,
  id: 'openaiCreateChatCompletion',
  method: 'POST',
  path: '/v1/chat/completions',
  summary: 'Complete a chat',
  description: 'Runs a task of an agent. With `stream`, the text is streamed while it is written.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: openaiBounds.body_bytes,
  awaits_key: true,
  body: openBody('model', 'messages', 'tools', 'tool_choice', 'response_format', 'metadata', 'stop'),
  responses: [json('The completion.')],
  problems: creating,
})
export const createResponse = defineOperation({
  ...common,
  id: 'openaiCreateResponse',
  method: 'POST',
  path: '/v1/responses',
  summary: 'Create a response',
  description: 'A segment of a task: it ends when the task ends or waits for this caller.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: openaiBounds.body_bytes,
  body: openBody('model', 'input', 'tools', 'tool_choice', 'text', 'metadata', 'reasoning', 'conversation', 'include'),
  responses: [json('The response.')],
  problems: creating,
})
export const getResponse = defineOperation({
  ...common,
  id: 'openaiGetResponse',
  method: 'GET',
  path: '/v1/responses/{response_id}',
  params: response,
  query: Type.Object({
    stream: Type.Optional(Type.Boolean()),
    starting_after: Type.Optional(Type.Integer({ minimum: -1, maximum: 2_147_483_647 })),
  }),
  summary: 'Read or resume a response',
  description: 'With `stream`: the events after `starting_after`, with their original sequence numbers.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The response.')],
  problems: ['response_not_found'],
})
export const cancelResponse = defineOperation({
  ...common,
  id: 'openaiCancelResponse',
  method: 'POST',
  path: '/v1/responses/{response_id}/cancel',
  params: response,
  summary: 'Cancel a response',
  description: 'Cancels the task of the response. A response that has ended is returned unchanged.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [json('The response.')],
  problems: ['response_not_found'],
})
export const deleteResponse = defineOperation({
  ...common,
  id: 'openaiDeleteResponse',
  method: 'DELETE',
  path: '/v1/responses/{response_id}',
  params: response,
  summary: 'Hide a response',
  description: 'The task stays for the retention period of tasks.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [json('What was deleted.')],
  problems: ['response_not_found'],
})

const page = Type.Object({
  after: Type.Optional(Type.String({ maxLength: 100 })),
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: openaiBounds.page_limit, default: 20 })),
  order: Type.Optional(Type.Unsafe<'asc' | 'desc'>({ type: 'string', enum: ['asc', 'desc'] })),
})

export const listInputItems = defineOperation({
  ...common,
  id: 'openaiListInputItems',
  method: 'GET',
  path: '/v1/responses/{response_id}/input_items',
  params: response,
  query: page,
  summary: 'List the input items of a response',
  description: 'A page of its input items.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('A page of items.')],
  problems: ['response_not_found'],
})

const ofConversation = { ...common, path: '/v1/conversations/{conversation_id}', params: conversation } as const
export const createConversation = defineOperation({
  ...common,
  id: 'openaiCreateConversation',
  method: 'POST',
  path: '/v1/conversations',
  summary: 'Create a conversation',
  description: 'The first response assigns the conversation to an agent.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: openaiBounds.body_bytes,
  body: openBody('items', 'metadata'),
  body_optional: true,
  responses: [json('The conversation.')],
  problems: [],
})
export const getConversation = defineOperation({
  ...ofConversation,
  id: 'openaiGetConversation',
  method: 'GET',
  summary: 'Read a conversation',
  description: 'The conversation with its metadata.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The conversation.')],
  problems: ['conversation_not_found'],
})
export const updateConversation = defineOperation({
  ...ofConversation,
  id: 'openaiUpdateConversation',
  method: 'POST',
  summary: 'Change the metadata of a conversation',
  description: 'Replaces the metadata.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  body: openBody('metadata'),
  responses: [json('The conversation.')],
  problems: ['conversation_not_found'],
})
export const deleteConversation = defineOperation({
  ...ofConversation,
  id: 'openaiDeleteConversation',
  method: 'DELETE',
  summary: 'Hide a conversation',
  description: 'The tasks stay for the retention period of tasks.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [json('What was deleted.')],
  problems: ['conversation_not_found'],
})
export const listConversationItems = defineOperation({
  ...ofConversation,
  path: '/v1/conversations/{conversation_id}/items',
  id: 'openaiListConversationItems',
  method: 'GET',
  query: page,
  summary: 'List the items of a conversation',
  description: 'Newest first by default.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('A page of items.')],
  problems: ['conversation_not_found'],
})
export const createConversationItems = defineOperation({
  ...ofConversation,
  path: '/v1/conversations/{conversation_id}/items',
  id: 'openaiCreateConversationItems',
  method: 'POST',
  body_bytes: openaiBounds.body_bytes,
  body: openBody('items'),
  summary: 'Add items to a conversation',
  description: 'Its next response reads them.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  responses: [json('The items.')],
  problems: ['conversation_not_found'],
})

const ofItem = {
  ...common,
  path: '/v1/conversations/{conversation_id}/items/{item_id}',
  params: { ...conversation, item_id: { description: 'The item.', example: 'msg_01jcm3x5v8f9a2b4c6d8e0g2h4' } },
} as const
export const getConversationItem = defineOperation({
  ...ofItem,
  id: 'openaiGetConversationItem',
  method: 'GET',
  summary: 'Read an item of a conversation',
  description: 'The item as the list has it.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [json('The item.')],
  problems: ['conversation_not_found', 'conversation_item_not_found'],
})
export const deleteConversationItem = defineOperation({
  ...ofItem,
  id: 'openaiDeleteConversationItem',
  method: 'DELETE',
  summary: 'Delete an item of a conversation',
  description: 'Only an item that no response has read yet. Input and output of a task stay with the task.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  responses: [json('The conversation.')],
  problems: ['conversation_not_found', 'conversation_item_not_found'],
})

/**
 * Operations of the OpenAI protocol. They are not among `operations`, so the OpenAPI document, SDKs and command line
 * do not contain them: another specification defines them, and its clients call them.
 */
export const openaiOperations: readonly Operation[] = [
  listModels,
  getModel,
  createChatCompletion,
  createResponse,
  getResponse,
  cancelResponse,
  deleteResponse,
  listInputItems,
  createConversation,
  getConversation,
  updateConversation,
  deleteConversation,
  listConversationItems,
  createConversationItems,
  getConversationItem,
  deleteConversationItem,
] as Operation[]
