import Type from 'typebox'
import { MetadataInput } from '../resources/agents.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  agentParameter,
  Choice,
  Confirmation,
  FreeObject,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'

const path = '/api/v1/projects/{project_id}/threads'

/** Whether a thread has tasks that have not finished. */
export const threadStates = ['idle', 'busy'] as const

/** Maximum length of a thread's title, which is the beginning of its first message. */
export const threadTitle_characters = 120

/**
 * A conversation with one agent. Its tasks run one after the other, and each gets the messages of the earlier ones.
 */
export const Thread = Named(
  'Thread',
  Type.Object({
    id: Type.String(),
    project_id: Type.String(),
    agent_id: Type.String(),
    status: Choice(threadStates, { description: '`busy` while it has tasks that have not finished.' }),
    title: Nullable(
      Type.String({ description: `The first ${threadTitle_characters} characters of the first message.` }),
    ),
    tasks: Type.Integer({ minimum: 0, description: 'Number of its tasks.' }),
    last_task_at: Nullable({ ...Timestamp, description: 'When its newest task was created.' }),
    metadata: FreeObject,
    created_by: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)

/** A message of a thread. It is stored once, with its task. */
export const ThreadMessage = Named(
  'ThreadMessage',
  Type.Object({
    id: Type.String(),
    role: Choice(['system', 'user', 'assistant', 'tool']),
    content: Type.String(),
    tool_calls: Nullable(
      Type.Array(Type.Object({ id: Type.String(), name: Type.String(), arguments: Type.Unsafe<unknown>({}) }), {
        description: 'For role `assistant`: the tool calls that the model requested; null if there are none.',
      }),
    ),
    tool_call_id: Nullable(Type.String({ description: 'For role `tool`: the call whose result this is.' })),
    task_id: Type.String(),
    created_at: Timestamp,
  }),
)

const threadExample = {
  id: 'thread_01jcm3x5v8f9a2b4c6d8e0g2h4',
  project_id: 'proj_42',
  agent_id: agentParameter.example,
  status: 'idle',
  title: 'What are your opening hours?',
  tasks: 1,
  last_task_at: '2026-11-20T09:30:30.000Z',
  metadata: { customer: '4711' },
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:31:00.000Z',
}
const newThreadExample = { ...threadExample, title: null, tasks: 0, last_task_at: null }
const messageExample = {
  id: 'msg_01jcm3x5v8f9a2b4c6d8e0g2h4',
  role: 'user',
  content: 'What are your opening hours?',
  tool_calls: null,
  tool_call_id: null,
  task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:30.000Z',
}

const common = { error_format: 'agents', tag: 'Threads', credentials: anyCredential, extension: true } as const
const ofProject = { ...common, path, params: { project_id: projectParameter } } as const
const ofThread = {
  ...common,
  path: `${path}/{thread_id}`,
  params: { project_id: projectParameter, thread_id: { description: 'The thread.', example: threadExample.id } },
} as const

export const createThread = defineOperation({
  ...ofProject,
  id: 'createThread',
  unaudited: 'the thread stores created_by, and a conversation changes nothing for other users',
  command: 'threads create',
  sdk: 'threads.create',
  method: 'POST',
  summary: 'Create a thread',
  description:
    'Starts a conversation. Tasks with its `thread_id` run one after the other, and each gets the messages of the earlier ones.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({ agent_id: Type.String({ maxLength: 100 }), metadata: Type.Optional(MetadataInput) }),
  body_example: { agent_id: agentParameter.example, metadata: threadExample.metadata },
  responses: [{ status: 201, description: 'The thread.', schema: Thread, example: newThreadExample }],
  problems: ['project_not_found', 'agent_not_found'],
})

export const listThreads = defineOperation({
  ...ofProject,
  id: 'listThreads',
  command: 'threads list',
  sdk: 'threads.list',
  method: 'GET',
  summary: 'List threads',
  description: 'Threads of the project, newest first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    agent_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only threads of this agent.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of threads.',
      schema: Named('ThreadList', Type.Object({ threads: Type.Array(Thread), pagination: OffsetPagination })),
      example: { threads: [threadExample], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getThread = defineOperation({
  ...ofThread,
  id: 'getThread',
  command: 'threads get',
  sdk: 'threads.get',
  method: 'GET',
  summary: 'Read a thread',
  description: 'State and metadata of the thread. Its messages are a separate list.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The thread.', schema: Thread, example: threadExample }],
  problems: ['project_not_found', 'thread_not_found'],
})

export const deleteThread = defineOperation({
  ...ofThread,
  id: 'deleteThread',
  audit: 'thread.deleted',
  command: 'threads delete',
  sdk: 'threads.delete',
  method: 'DELETE',
  summary: 'Delete a thread',
  description: 'Refused while the thread has tasks that have not finished. Its tasks stay and can still be read.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The thread is deleted.',
      schema: Confirmation({ thread_id: Type.String() }),
      example: { message: 'Thread deleted', thread_id: threadExample.id },
    },
  ],
  problems: ['project_not_found', 'thread_not_found', 'thread_busy'],
})

export const listThreadMessages = defineOperation({
  ...ofThread,
  path: `${ofThread.path}/messages`,
  id: 'listThreadMessages',
  command: 'threads messages',
  sdk: 'threads.messages',
  method: 'GET',
  summary: "Read a thread's messages",
  description: 'Messages in the order of the tasks, and within a task in their own order.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({}),
  responses: [
    {
      status: 200,
      description: 'A page of messages.',
      schema: Named(
        'ThreadMessageList',
        Type.Object({ messages: Type.Array(ThreadMessage), pagination: OffsetPagination }),
      ),
      example: { messages: [messageExample], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found', 'thread_not_found'],
})

export const threadOperations: Operation[] = [
  createThread,
  listThreads,
  getThread,
  deleteThread,
  listThreadMessages,
] as Operation[]
