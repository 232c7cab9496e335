import Type from 'typebox'
import { defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Named, Timestamp } from '../core/schemas.ts'
import { createTask, messageContent, ofTask, retriedExample, Task, waitSeconds } from './tasks.ts'

/** Bounds of messages and retries. Lengths count code points. */
export const taskActionBounds = {
  message: 500_000,
  /** Messages that a task may have not read yet. */
  unread_messages: 100,
  /** Maximum of `from_step`, far more steps than a task can have. */
  from_step: 100_000,
} as const

/** A message that a person sent to a task. */
export const TaskMessage = Named(
  'TaskMessage',
  Type.Object({
    id: Type.String(),
    task_id: Type.String(),
    role: Choice(['user']),
    content: messageContent,
    created_by: Type.String(),
    created_at: Timestamp,
  }),
)

const messageExample = {
  id: 'msg_01jcm3x5v8f9a2b4c6d8e0g2h4',
  task_id: retriedExample.id,
  role: 'user',
  content: 'On Sundays, too?',
  created_by: retriedExample.created_by,
  created_at: '2026-11-20T09:30:00.500Z',
}

export const sendTaskMessage = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/messages`,
  id: 'sendTaskMessage',
  unaudited: 'the task stores the message with its sender',
  command: 'tasks message',
  sdk: 'tasks.sendMessage',
  method: 'POST',
  summary: 'Send a message to a task',
  description:
    'If the task waits for input (`wait.reason` is `input`), the message is the answer and the task continues. Otherwise the model gets it with its next call. Refused for a finished task. Images that are given by URL become files of the task.',
  scope: 'tasks:write',
  bucket: 'tasks.action',
  body: Type.Object({ content: messageContent }),
  body_example: { content: messageExample.content },
  responses: [{ status: 201, description: 'The message.', schema: TaskMessage, example: messageExample }],
  problems: [
    'project_not_found',
    'task_not_found',
    'task_already_finished',
    'queue_full',
    'file_not_found',
    'file_too_large',
    'quota_exceeded',
  ],
})

export const retryTask = defineOperation({
  ...ofTask,
  path: `${ofTask.path}/retry`,
  id: 'retryTask',
  audit: 'task.retried',
  command: 'tasks retry',
  sdk: 'tasks.retry',
  method: 'POST',
  summary: 'Retry a task',
  description:
    "Creates a new task from a finished one, with the same input and limits and the agent's current version. `retried_from` names the old task, which does not change. With `from_step`, the steps before that one are copied with their results and not repeated. With `Accept: text/event-stream` the response is the stream of the new task.",
  scope: 'tasks:write',
  bucket: 'tasks.action',
  query: Type.Object({ wait: waitSeconds }),
  body_optional: true,
  body: Type.Object({
    from_step: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: taskActionBounds.from_step,
        default: 0,
        description: 'The `index` of the first step to repeat.',
      }),
    ),
  }),
  body_example: { from_step: 0 },
  responses: [
    { status: 201, description: 'The new task, finished or not.', schema: Task, example: retriedExample },
    ...createTask.responses.slice(1),
  ],
  problems: [
    'project_not_found',
    'task_not_found',
    'thread_not_found',
    'agent_not_running',
    'resource_conflict',
    'queue_full',
    'budget_exceeded',
  ],
})

export const taskActionOperations: Operation[] = [sendTaskMessage, retryTask] as Operation[]
