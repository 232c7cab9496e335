import Type, { type Static } from 'typebox'
import { DataSchema, MetadataInput, TaskBudget } from '../resources/agents.ts'
import { Artifact, artifactExample } from '../resources/files.ts'
import { TaskTool } from '../tools/tools.ts'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  agentParameter,
  boundedJson,
  Choice,
  Confirmation,
  Defaulted,
  FreeObject,
  Named,
  Nullable,
  cursorParameter,
  OffsetCursorPagination,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'
import { stepStates, stepTypes, taskEventTypes, taskStates, waitReasons, type TaskState } from './task-lifecycle.ts'

const tag = 'Tasks'
const project = '/api/v1/projects/{project_id}'

/** Bounds of tasks. Lengths count code points. */
export const taskBounds = {
  input: 500_000,
  input_messages: 2000,
  /** Size of a request that creates a task; it may contain images. */
  body_bytes: 8 * 1_048_576,
  /** Images of one input that are given by URL or as data. */
  input_urls: 20,
  /** Parts of one message. */
  message_parts: 100,
  /** Size of an input object, as JSON. */
  input_bytes: 524_288,
  /** Seconds that a request may wait for a task. */
  wait_seconds: 60,
  timeout_seconds: 86_400,
  queue_ttl_seconds: 30 * 86_400,
  max_attempts: 100,
  priority: 9,
  cancel_reason: 500,
  concurrency_key: 128,
} as const

/** How many tasks, and characters of each input, a search in a list of tasks examines. */
export const taskSearch = { tasks: 10_000, characters: 20_000 } as const

const counts = {
  input_tokens: Type.Integer({ minimum: 0 }),
  output_tokens: Type.Integer({ minimum: 0 }),
  cached_tokens: Type.Integer({ minimum: 0, description: 'Input tokens that the provider read from its cache.' }),
  reasoning_tokens: Type.Integer({
    minimum: 0,
    description: 'Output tokens for reasoning; part of `output_tokens`.',
  }),
}
const cost = Nullable(
  Type.Number({ minimum: 0, description: 'US dollars. Null if a price is unknown; prices are never guessed.' }),
)

const modelUsage = Type.Object({ calls: Type.Integer({ minimum: 0 }), ...counts, cost_usd: cost })

/** Usage of a task. */
export const TaskUsage = Named(
  'TaskUsage',
  Type.Object({
    ...counts,
    steps: Type.Integer({ minimum: 0 }),
    tool_calls: Type.Integer({ minimum: 0 }),
    cost_usd: cost,
    by_model: Type.Unsafe<Record<string, Static<typeof modelUsage>>>({
      type: 'object',
      additionalProperties: modelUsage,
    }),
  }),
)

/** A text part of a message. */
export interface TextPart {
  type: 'text'
  text: string
}
/** A file of the project: an image that the model sees, or a document that it reads. */
export interface FilePart {
  type: 'image' | 'file'
  file_id: string
}
/** An image that becomes a file when the task is created: a `data:` URL, or an `https:` URL that is fetched once. */
export interface ImageUrlPart {
  type: 'image'
  url: string
}
export type MessagePart = TextPart | FilePart | ImageUrlPart
/** Content of a message: a text, or parts. */
export type MessageContent = string | MessagePart[]

const messageText = Type.String({ minLength: 1, maxLength: taskBounds.input })
const fileId = Type.String({ minLength: 1, maxLength: 100, description: 'A file of the project.' })
/** Of a picture: a member that is null is absent. */
const notBoth = {
  not: { required: ['file_id', 'url'], properties: { file_id: { type: 'string' }, url: { type: 'string' } } },
  description: 'Either `file_id` or `url`, and not both.',
}
const messagePart = {
  anyOf: [
    Type.Object({ type: Choice(['text']), text: messageText }),
    Type.Object({ type: Choice(['image', 'file']), file_id: fileId }, notBoth),
    Type.Object(
      {
        type: Choice(['image']),
        url: Type.String({
          pattern: '^(data:image/|https://)',
          maxLength: taskBounds.body_bytes,
          description: 'A `data:` URL of an image, or an `https:` URL that is fetched once. The image becomes a file.',
        }),
      },
      notBoth,
    ),
  ],
}
/** Schema of the content of a message. */
export const messageContent = Type.Unsafe<MessageContent>({
  anyOf: [messageText, { type: 'array', items: messagePart, minItems: 1, maxItems: taskBounds.message_parts }],
  description: 'A text, or a list of parts: texts and, in messages of the user, images and files.',
})
const inputCall = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 128 }),
  name: Type.String({ minLength: 1, maxLength: 128 }),
  arguments: Type.Unsafe<unknown>({ 'x-verbatim': true, 'x-null': true, description: 'The arguments of the call.' }),
})
const message = {
  role: Choice(['system', 'user', 'assistant', 'tool']),
  tool_calls: Type.Optional(
    Type.Array(inputCall, {
      minItems: 1,
      maxItems: 128,
      description:
        'For role `assistant`: the tool calls that the model requested. Their results follow as messages with role `tool`.',
    }),
  ),
  call_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 128, description: 'For role `tool`: the call whose result this is.' }),
  ),
}

/** A message of an input. */
export interface InputMessage {
  role: 'system' | 'user' | 'assistant' | 'tool'
  content: MessageContent
  /** For role `assistant`: the tool calls that the model requested. */
  tool_calls?: { id: string; name: string; arguments: unknown }[]
  /** For role `tool`: the call whose result this is. */
  call_id?: string
}

export type TaskInput = string | InputMessage[] | Record<string, unknown>

const inputObject = boundedJson(
  { type: 'object', additionalProperties: true, 'x-verbatim': true },
  taskBounds.input_bytes,
)

const input = Type.Unsafe<TaskInput>({
  anyOf: [
    { type: 'string', minLength: 1, maxLength: taskBounds.input },
    {
      type: 'array',
      items: Type.Object({ ...message, content: messageContent }),
      minItems: 1,
      maxItems: taskBounds.input_messages,
    },
    inputObject,
  ],
  description: 'The input: a text, messages, or an object if the agent has an `input_schema`.',
})

/** The input in responses. Unlike in requests, content may be empty, for an assistant that only called tools. */
const shownInput = Type.Unsafe<TaskInput>({
  anyOf: [
    { type: 'string' },
    {
      type: 'array',
      items: Type.Object({
        ...message,
        content: Type.Unsafe<MessageContent>({ anyOf: [{ type: 'string' }, { type: 'array', items: messagePart }] }),
      }),
    },
    { type: 'object', additionalProperties: true },
  ],
  description: 'The input: a text, messages, or an object if the agent has an `input_schema`.',
})

/** Usage of a task and of the tasks below it. */
const WholeUsage = Named(
  'WholeUsage',
  Type.Object({
    ...TaskUsage.properties,
    total: Type.Unsafe<Static<typeof TaskUsage>>({
      ...TaskUsage,
      description: 'Usage including the delegated tasks that have ended.',
    }),
  }),
)

export const Task = Named(
  'Task',
  Type.Object({
    id: Type.String(),
    project_id: Type.String(),
    agent_id: Type.String(),
    agent_version: Type.Integer({
      minimum: 0,
      description: 'The version of the agent that the task runs with.',
    }),
    thread_id: Nullable(Type.String()),
    retried_from: Nullable(Type.String()),
    schedule_id: Nullable(Type.String()),
    parent_task_id: Nullable(Type.String({ description: 'The task that delegated this one.' })),
    root_task_id: Type.String({
      description: 'The root of its tree of tasks; the task itself if it was not delegated.',
    }),
    depth: Type.Integer({ minimum: 0, description: 'Level in the tree; 0 for the root.' }),
    status: Choice(taskStates),
    wait: Nullable(
      Type.Object({
        reason: Choice(waitReasons),
        since: Timestamp,
        until: Nullable(Timestamp),
        approval_ids: Type.Array(Type.String()),
        tool_call_ids: Type.Optional(Type.Array(Type.String(), { description: 'Open calls of client tools.' })),
        step_ids: Type.Optional(
          Type.Array(Type.String(), {
            description: 'Steps that the caller can answer: open calls of client tools, and questions.',
          }),
        ),
        child_task_ids: Type.Optional(Type.Array(Type.String(), { description: 'Delegated tasks that it waits for.' })),
        credential_ids: Type.Optional(
          Type.Array(Type.String(), { description: 'For reason `credential`: the credentials to connect.' }),
        ),
        queue: Type.Optional(Type.String({ description: 'For reason `worker`: the queue that it waits in.' })),
      }),
    ),
    input: shownInput,
    output: Nullable(
      Type.Object(
        {
          content: Type.String(),
          data: Type.Unsafe<unknown>({
            description: 'The output that matches `output_schema`; null without a schema.',
          }),
          artifacts: Type.Optional(
            Type.Array(Artifact, { description: 'Files that the task created. Absent if it created none.' }),
          ),
        },
        { description: 'The output; partial if the task failed or was canceled.' },
      ),
    ),
    error: Nullable(
      Type.Object({
        code: Type.String(),
        message: Type.String(),
        retryable: Type.Boolean({ description: 'Whether a later retry of the task may succeed.' }),
        step_id: Nullable(Type.String()),
      }),
    ),
    priority: Type.Integer({ minimum: 0, maximum: taskBounds.priority }),
    concurrency_key: Nullable(Type.String()),
    run_after: Nullable(Timestamp),
    queue_ttl_seconds: Nullable(Type.Integer()),
    timeout_seconds: Nullable(Type.Integer()),
    max_attempts: Type.Integer(),
    budget: TaskBudget,
    output_schema: Nullable(FreeObject),
    usage: WholeUsage,
    metadata: FreeObject,
    created_by: Type.String(),
    trace_id: Nullable(Type.String()),
    created_at: Timestamp,
    started_at: Nullable(Timestamp),
    finished_at: Nullable(Timestamp),
    updated_at: Timestamp,
    cancel_requested_at: Nullable(Timestamp),
    last_sequence: Type.Integer({ minimum: 1, description: 'Sequence number of its last event.' }),
  }),
)

/** A step of the journal. */
export const TaskStep = Named(
  'TaskStep',
  Type.Object({
    id: Type.String(),
    index: Type.Integer({ minimum: 0 }),
    type: Choice(stepTypes),
    status: Choice(stepStates),
    attempt: Type.Integer({ minimum: 1, description: 'How many times the step was started.' }),
    name: Type.String({ description: 'The model or the tool.' }),
    input: Type.Unsafe<unknown>({}),
    output: Type.Unsafe<unknown>({}),
    error: Nullable(Type.Object({ code: Type.String(), message: Type.String(), retryable: Type.Boolean() })),
    model: Nullable(Type.String()),
    usage: Nullable(FreeObject),
    started_at: Timestamp,
    finished_at: Nullable(Timestamp),
  }),
)

/** An event of a task. */
export const TaskEventObject = Named(
  'TaskEvent',
  Type.Object({
    sequence: Type.Integer({ minimum: 1, description: 'Number of the event in its task: from 1, without gaps.' }),
    task_id: Type.String(),
    type: Choice(taskEventTypes),
    created_at: Timestamp,
    data: FreeObject,
  }),
)

const usageExample = {
  input_tokens: 14,
  output_tokens: 9,
  cached_tokens: 0,
  reasoning_tokens: 0,
  steps: 1,
  tool_calls: 0,
  cost_usd: 0.0000075,
  by_model: {
    'openai/gpt-4o-mini': {
      calls: 1,
      input_tokens: 14,
      output_tokens: 9,
      cached_tokens: 0,
      reasoning_tokens: 0,
      cost_usd: 0.0000075,
    },
  },
}
const noUsageExample = {
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  reasoning_tokens: 0,
  steps: 0,
  tool_calls: 0,
  cost_usd: 0,
  by_model: {},
}
const queuedExample = {
  id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
  project_id: 'proj_42',
  agent_id: agentParameter.example,
  agent_version: 0,
  thread_id: null,
  retried_from: null,
  schedule_id: null,
  parent_task_id: null,
  root_task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
  depth: 0,
  status: 'queued',
  wait: null,
  input: 'What are your opening hours?',
  output: null,
  error: null,
  priority: 5,
  concurrency_key: null,
  run_after: null,
  queue_ttl_seconds: null,
  timeout_seconds: null,
  max_attempts: 5,
  budget: {},
  output_schema: null,
  usage: { ...noUsageExample, total: noUsageExample },
  metadata: { ticket: '4711' },
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  trace_id: null,
  created_at: '2026-11-20T09:30:00.000Z',
  started_at: null,
  finished_at: null,
  updated_at: '2026-11-20T09:30:00.000Z',
  cancel_requested_at: null,
  last_sequence: 1,
}
const completedExample = {
  ...queuedExample,
  status: 'completed',
  output: { content: 'We are open from nine to five.', data: null },
  usage: { ...usageExample, total: usageExample },
  started_at: '2026-11-20T09:30:00.004Z',
  finished_at: '2026-11-20T09:30:01.210Z',
  updated_at: '2026-11-20T09:30:01.210Z',
  last_sequence: 7,
}
/** A task that retries a finished one. */
export const retriedExample = {
  ...queuedExample,
  id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h5',
  retried_from: queuedExample.id,
}
const stepExample = {
  id: 'step_01jcm3x5v8f9a2b4c6d8e0g2h4',
  index: 0,
  type: 'model_call',
  status: 'completed',
  attempt: 1,
  name: 'openai/gpt-4o-mini',
  input: { messages: 1, message_id: 'msg_01jcm3x5v8f9a2b4c6d8e0g2h4' },
  output: {
    message_id: 'msg_01jcm3x5v8f9a2b4c6d8e0g2h4',
    text: completedExample.output.content,
    tool_calls: [],
    finish_reason: 'stop',
  },
  error: null,
  model: 'openai/gpt-4o-mini',
  usage: { input_tokens: 14, output_tokens: 9, cached_tokens: 0, reasoning_tokens: 0, cost_usd: 0.0000075 },
  started_at: '2026-11-20T09:30:00.006Z',
  finished_at: '2026-11-20T09:30:01.208Z',
}
const eventExample = {
  sequence: 7,
  task_id: queuedExample.id,
  type: 'task.completed',
  created_at: completedExample.finished_at,
  data: { output: completedExample.output, usage: usageExample },
}
const streamExample = `retry: 1000\n\nevent: task.snapshot\ndata: {"sequence":7,"task_id":"${queuedExample.id}","type":"task.snapshot",…}\n\nid: 7\nevent: task.completed\ndata: ${JSON.stringify(eventExample)}\n\n`

const taskParameter = { description: 'The task.', example: queuedExample.id }
const common = { error_format: 'agents', tag, credentials: anyCredential, extension: true } as const
const ofAgent = {
  ...common,
  path: `${project}/agents/{agent_id}/tasks`,
  params: { project_id: projectParameter, agent_id: agentParameter },
} as const
const ofProject = { ...common, path: `${project}/tasks`, params: { project_id: projectParameter } } as const
/** Members that operations on one task share. */
export const ofTask = {
  ...common,
  path: `${project}/tasks/{task_id}`,
  params: { project_id: projectParameter, task_id: taskParameter },
} as const

/** Query parameter: seconds that a request waits for its task. */
export const waitSeconds = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: taskBounds.wait_seconds,
    default: 0,
    description:
      'Maximum number of seconds to wait until the task has finished or waits for something. The response is always the task in its state at that time.',
  }),
)

const listQuery = offsetQuery({
  status: Type.Optional(Choice(taskStates, { description: 'Only tasks in this state.' })),
  error_code: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'Only tasks that failed with this code, as `error.code` says.',
    }),
  ),
  thread_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only tasks of this thread.' })),
  created_after: Type.Optional(TimestampInput),
  created_before: Type.Optional(TimestampInput),
  finished_after: Type.Optional({ ...TimestampInput, description: 'Only tasks that finished at this time or later.' }),
  finished_before: Type.Optional({ ...TimestampInput, description: 'Only tasks that finished before this time.' }),
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: bounds.search,
      description: `Only tasks whose input contains this text in its first ${taskSearch.characters.toLocaleString('en')} characters, case-insensitively. A text of the form \`task_…\` is the prefix of a task id instead. The search examines the newest ${taskSearch.tasks.toLocaleString('en')} tasks that pass the other filters; \`total\` counts the matches among those.`,
    }),
  ),
  root_task_id: Type.Optional(
    Type.String({
      maxLength: 100,
      description: 'Only tasks of the tree with this root, including the root.',
    }),
  ),
  parent_task_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only tasks that this task delegated.' })),
  schedule_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only tasks of this schedule.' })),
  roots: Type.Optional(Type.Boolean({ description: 'Only tasks that were not delegated.' })),
  door: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description:
        'Only tasks from this protocol or trigger, by `metadata.door.kind`: `openai.chat`, `openai.responses`, `mcp`, `a2a`, `agui`, or `trigger:` and the trigger id.',
    }),
  ),
  sort: Defaulted(
    Choice(['created_at', '-created_at'], {
      default: '-created_at',
      description: 'Sort order; a minus means descending.',
    }),
  ),
  ...cursorParameter,
})
const TaskList = Named('TaskList', Type.Object({ tasks: Type.Array(Task), pagination: OffsetCursorPagination }))
const listResponse = {
  status: 200,
  description: 'A page of tasks.',
  schema: TaskList,
  example: { tasks: [completedExample], pagination: { ...offsetPaginationExample, next_cursor: null } },
}

export const createTask = defineOperation({
  ...ofAgent,
  id: 'createTask',
  unaudited: 'the task stores created_by, credential_id and request_id; there can be thousands per minute',
  command: 'tasks create',
  sdk: 'tasks.create',
  method: 'POST',
  summary: 'Create a task',
  description:
    'The task is committed before the response, and runs whether or not the caller waits. With `Accept: text/event-stream` the response is the stream of the task. A paused agent queues the task; a stopped agent refuses it.',
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: taskBounds.body_bytes,
  query: Type.Object({ wait: waitSeconds }),
  body: Type.Object({
    input,
    thread_id: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        description: 'The thread that the task continues. It starts when the earlier tasks of the thread have ended.',
      }),
    ),
    concurrency_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: taskBounds.concurrency_key,
        pattern: '^[ -~]*$',
        description: 'Only one task of the project with this key runs or waits at a time. Printable ASCII.',
      }),
    ),
    priority: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: taskBounds.priority,
        default: 5,
        description: 'Tasks with a higher priority start first.',
      }),
    ),
    run_after: Type.Optional(TimestampInput),
    queue_ttl_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: taskBounds.queue_ttl_seconds,
        description: 'The task expires if it has not started within so many seconds.',
      }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: taskBounds.timeout_seconds,
        description: 'The task expires so many seconds after its start.',
      }),
    ),
    max_attempts: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: taskBounds.max_attempts,
        default: 5,
        description: 'Maximum number of workers that the task may be lost with before it fails.',
      }),
    ),
    budget: Type.Optional(TaskBudget),
    output_schema: Type.Optional(DataSchema('Schema of `output.data`; replaces the `output_schema` of the agent.')),
    agent_version: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: bounds.offset,
        description: 'The version of the agent that the task runs with. Default: the newest.',
      }),
    ),
    tools: Type.Optional(
      Type.Array(TaskTool, {
        minItems: 1,
        maxItems: bounds.task_tools,
        description:
          'Client tools of this task. The task waits for the results of their calls (see `claimToolCall`). The names must differ from those of the agent.',
      }),
    ),
    metadata: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        ...MetadataInput,
        description: 'Free-form members. The service sets `door`.',
      }),
    ),
  }),
  body_example: { input: queuedExample.input, metadata: queuedExample.metadata },
  responses: [
    { status: 201, description: 'The task, finished or not.', schema: Task, example: queuedExample },
    {
      status: 201,
      description: 'The stream of the task, if `Accept` requests it.',
      media_type: 'text/event-stream',
      example: streamExample,
    },
  ],
  problems: [
    'project_not_found',
    'agent_not_found',
    'agent_version_not_found',
    'thread_not_found',
    'agent_not_running',
    'queue_full',
    'budget_exceeded',
    'file_not_found',
    'file_too_large',
    'quota_exceeded',
  ],
})

/** Result of one task of a batch: as of a separate request. */
const BatchResult = Named(
  'BatchResult',
  Type.Object({
    status: Type.Integer({
      description: 'The HTTP status that a separate request would have: 201 if the task was created.',
    }),
    task: Type.Optional(Task),
    error: Type.Optional(
      Type.Object({ code: Type.String(), message: Type.String(), details: Type.Optional(Type.Unsafe<unknown>({})) }),
    ),
  }),
)

export const createTaskBatch = defineOperation({
  ...ofAgent,
  path: `${ofAgent.path}/batch`,
  id: 'createTaskBatch',
  unaudited: 'like createTask',
  command: 'tasks create-batch',
  sdk: 'tasks.createBatch',
  method: 'POST',
  summary: 'Create many tasks',
  description: `Up to ${bounds.batch_tasks.toLocaleString('en')} bodies of \`createTask\`, each with its own result in the same order. A refused task does not affect the others. All created tasks are committed before the response. Images by URL are not accepted here.`,
  scope: 'tasks:write',
  bucket: 'tasks.create',
  body_bytes: taskBounds.body_bytes,
  body: Type.Object({
    // Without a type, so that an element that is no object gets its own error.
    tasks: Type.Array(Type.Unsafe<Record<string, unknown>>({ additionalProperties: true }), {
      minItems: 1,
      maxItems: bounds.batch_tasks,
      description: 'Bodies of `createTask`.',
    }),
  }),
  body_example: { tasks: [{ input: queuedExample.input }] },
  responses: [
    {
      status: 200,
      description: 'The result of each task, in the same order.',
      schema: Named('BatchResults', Type.Object({ results: Type.Array(BatchResult) })),
      example: { results: [{ status: 201, task: queuedExample }] },
    },
  ],
  problems: ['project_not_found', 'agent_not_found', 'agent_not_running', 'queue_full', 'budget_exceeded'],
})

export const deleteTask = defineOperation({
  ...ofTask,
  id: 'deleteTask',
  audit: 'task.erased',
  command: 'tasks delete',
  sdk: 'tasks.delete',
  method: 'DELETE',
  summary: 'Erase a task',
  description:
    'Removes a finished task and the tasks that it delegated: inputs, outputs, journals, events, messages, logs, and files that no other task uses. Stored webhook events of the task lose their content. The audit log keeps who erased which task, and usage keeps the cost. 409 while the task or one below it is open: cancel it first.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The task is erased.',
      schema: Confirmation({ task_id: Type.String() }),
      example: { message: 'Task erased', task_id: queuedExample.id },
    },
  ],
  problems: ['project_not_found', 'task_not_found', 'resource_conflict'],
})

export const eraseTasks = defineOperation({
  ...ofProject,
  path: `${ofProject.path}/erase`,
  id: 'eraseTasks',
  audit: 'task.erased',
  command: 'tasks erase',
  sdk: 'tasks.erase',
  method: 'POST',
  summary: 'Erase tasks by their metadata',
  description: `Erases finished tasks of the project whose \`metadata\` contains all these members, like \`deleteTask\`, oldest first and up to ${bounds.erased_tasks.toLocaleString('en')}. \`remaining\` is the number of matching tasks that are not erased: repeat the request, and cancel open tasks first.`,
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    metadata: Type.Unsafe<Record<string, unknown>>({
      ...boundedJson({ type: 'object', additionalProperties: true, minProperties: 1 }, bounds.metadata_bytes),
      'x-verbatim': true,
      description: 'Members that the `metadata` of the tasks contains.',
    }),
  }),
  body_example: { metadata: { customer: '4711' } },
  responses: [
    {
      status: 200,
      description: 'The number of erased and remaining tasks.',
      schema: Named(
        'Erasure',
        Type.Object({ erased: Type.Integer({ minimum: 0 }), remaining: Type.Integer({ minimum: 0 }) }),
      ),
      example: { erased: 12, remaining: 0 },
    },
  ],
  problems: ['project_not_found'],
})

export const listAgentTasks = defineOperation({
  ...ofAgent,
  id: 'listAgentTasks',
  command: 'agents tasks',
  sdk: 'tasks.listOfAgent',
  method: 'GET',
  summary: "List an agent's tasks",
  description: 'Tasks of the agent, newest first by default.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  query: listQuery,
  responses: [listResponse],
  problems: ['project_not_found', 'agent_not_found'],
})

export const listTasks = defineOperation({
  ...ofProject,
  id: 'listTasks',
  command: 'tasks list',
  sdk: 'tasks.list',
  method: 'GET',
  summary: "List a project's tasks",
  description: 'Tasks of all agents of the project, newest first by default.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  query: listQuery,
  responses: [listResponse],
  problems: ['project_not_found'],
})

export const getTask = defineOperation({
  ...ofTask,
  id: 'getTask',
  command: 'tasks get',
  sdk: 'tasks.get',
  method: 'GET',
  summary: 'Read a task',
  description: 'With `wait`, the response is sent when the task has finished or waits for something.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  query: Type.Object({ wait: waitSeconds }),
  responses: [{ status: 200, description: 'The task.', schema: Task, example: completedExample }],
  problems: ['project_not_found', 'task_not_found'],
})

const CancelResult = Named('TaskActionResult', Confirmation({ task_id: Type.String(), status: Choice(taskStates) }))

/** A task in its tree. */
export interface TaskNode {
  id: string
  agent_id: string
  /** Null if the agent is deleted. */
  agent_name: string | null
  status: TaskState
  depth: number
  children: TaskNode[]
}
const TaskNodeSchema = Named(
  'TaskNode',
  Type.Unsafe<TaskNode>({
    type: 'object',
    properties: {
      id: { type: 'string' },
      agent_id: { type: 'string' },
      agent_name: { type: 'string', nullable: true },
      status: { type: 'string', enum: [...taskStates] },
      depth: { type: 'integer', minimum: 0 },
      children: { type: 'array', items: { type: 'object', additionalProperties: true, 'x-ref': 'TaskNode' } },
    },
    required: ['id', 'agent_id', 'agent_name', 'status', 'depth', 'children'],
  }),
)
const nodeExample: TaskNode = {
  id: completedExample.id,
  agent_id: agentParameter.example,
  agent_name: 'support',
  status: 'completed',
  depth: 0,
  children: [],
}

export const getTaskTree = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/tree`,
  id: 'getTaskTree',
  command: 'tasks tree',
  sdk: 'tasks.tree',
  method: 'GET',
  summary: 'Read the tree of a task',
  description: `The task and the tasks that were delegated below it; up to ${bounds.tree_tasks}, oldest first.`,
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [
    {
      status: 200,
      description: 'The tree.',
      schema: Named(
        'TaskTree',
        Type.Object({
          task: TaskNodeSchema,
        }),
      ),
      example: { task: nodeExample },
    },
  ],
  problems: ['project_not_found', 'task_not_found'],
})

export const cancelTask = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/cancel`,
  id: 'cancelTask',
  audit: 'task.canceled',
  command: 'tasks cancel',
  sdk: 'tasks.cancel',
  method: 'POST',
  summary: 'Cancel a task',
  description:
    'A queued or waiting task is canceled immediately (200). A running task is asked to end (202): its call is aborted, and the event `task.canceled` lists the calls that took effect. Repeating the request gives the same response.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  body_optional: true,
  body: Type.Object({
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: taskBounds.cancel_reason })),
    mode: Type.Optional(Choice(['graceful', 'force'], { default: 'graceful' })),
  }),
  body_example: { reason: 'No longer needed' },
  responses: [
    {
      status: 200,
      description: 'The task is canceled.',
      schema: CancelResult,
      example: { message: 'Task canceled', task_id: queuedExample.id, status: 'canceled' },
    },
    {
      status: 202,
      description: 'Its worker was notified.',
      schema: CancelResult,
      example: { message: 'Cancellation requested', task_id: queuedExample.id, status: 'running' },
    },
  ],
  problems: ['project_not_found', 'task_not_found', 'task_already_finished'],
})

export const listTaskSteps = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/steps`,
  id: 'listTaskSteps',
  command: 'tasks steps',
  sdk: 'tasks.steps',
  method: 'GET',
  summary: "Read a task's journal",
  description: 'The steps of the task in their order.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  query: offsetQuery({}),
  responses: [
    {
      status: 200,
      description: 'A page of steps.',
      schema: Named('TaskStepList', Type.Object({ steps: Type.Array(TaskStep), pagination: OffsetPagination })),
      example: { steps: [stepExample], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found', 'task_not_found'],
})

export const listTaskArtifacts = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/artifacts`,
  id: 'listTaskArtifacts',
  command: 'tasks artifacts',
  sdk: 'tasks.artifacts',
  method: 'GET',
  summary: "Read a task's artifacts",
  description:
    'Files that the tools of the task saved as results, in the order of creation; available while the task runs.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  responses: [
    {
      status: 200,
      description: 'The artifacts.',
      schema: Named('ArtifactList', Type.Object({ artifacts: Type.Array(Artifact) })),
      example: { artifacts: [artifactExample] },
    },
  ],
  problems: ['project_not_found', 'task_not_found'],
})

export const listTaskEventsOperation = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/events`,
  id: 'listTaskEvents',
  command: 'tasks events',
  sdk: 'tasks.events',
  method: 'GET',
  summary: "Read a task's events",
  description: '`offset` is the last sequence number that you have, because sequence numbers have no gaps.',
  scope: 'watch_tasks',
  bucket: 'tasks.read',
  query: offsetQuery(cursorParameter, bounds.log_limit, bounds.log_limit_default),
  responses: [
    {
      status: 200,
      description: 'A page of events.',
      schema: Named(
        'TaskEventList',
        Type.Object({ events: Type.Array(TaskEventObject), pagination: OffsetCursorPagination }),
      ),
      example: {
        events: [eventExample],
        pagination: { total: 7, limit: 100, offset: 6, has_more: false, next_cursor: null },
      },
    },
  ],
  problems: ['project_not_found', 'task_not_found'],
})

export const streamTaskEvents = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/events/stream`,
  id: 'streamTaskEvents',
  command: 'tasks watch',
  sdk: 'tasks.rawStream',
  sdk_note: 'Returns the raw response; `stream` parses it.',
  method: 'GET',
  summary: 'Stream a task',
  description:
    'Server-sent events: `task.snapshot`, then every event after `Last-Event-ID` (or `offset`), then new events. Text of a model arrives as `message.delta` without an id. The stream ends with the task.',
  scope: 'watch_tasks',
  bucket: 'tasks.stream',
  query: Type.Object({
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: bounds.offset,
        default: 0,
        description: 'The last sequence number that you have.',
      }),
    ),
  }),
  responses: [{ status: 200, description: 'The stream.', media_type: 'text/event-stream', example: streamExample }],
  problems: ['project_not_found', 'task_not_found'],
})

/** For other operations that create tasks: the schema of the input, and an example of a new task. */
export { input as taskInput, queuedExample as queuedTaskExample }

export const taskOperations: Operation[] = [
  createTask,
  createTaskBatch,
  eraseTasks,
  deleteTask,
  listAgentTasks,
  listTasks,
  getTask,
  getTaskTree,
  cancelTask,
  listTaskSteps,
  listTaskArtifacts,
  listTaskEventsOperation,
  streamTaskEvents,
] as Operation[]
