import Type, { type TProperties } from 'typebox'
import { Artifact } from '../resources/files.ts'
import { budgetScopes } from '../resources/budget-window.ts'
import type { TaskEventName } from './events.ts'
import { boundedJson, Choice, FreeObject, Named, Nullable, Timestamp } from '../core/schemas.ts'
import { approvalKinds, approvalTimeouts, taskStates, waitReasons } from '../tasks/task-lifecycle.ts'

/**
 * Bounds of a task in a webhook event, so that a delivery stays far below 20 KB: texts (code points) and lists are cut,
 * and larger arguments of a call are omitted. The stored event is complete.
 */
export const taskEventBounds = {
  text: 1000,
  items: 20,
  artifacts: 10,
  tool: 128,
  arguments_bytes: 4096,
  data_bytes: 4096,
} as const

const text = Type.String({ maxLength: taskEventBounds.text })
const count = Type.Integer({ minimum: 0 })
const cost = Nullable(Type.Number({ minimum: 0, description: 'US dollars; null if a price is unknown.' }))
const attempt = Type.Integer({ minimum: 1, description: 'Number of claims of the task so far.' })
const tool = Type.String({ maxLength: taskEventBounds.tool })
const calls = Type.Array(Type.Object({ step_id: Type.String(), tool }), { maxItems: taskEventBounds.items })

const usage = Type.Object(
  {
    input_tokens: count,
    output_tokens: count,
    cached_tokens: count,
    reasoning_tokens: count,
    steps: count,
    tool_calls: count,
    cost_usd: cost,
  },
  { description: 'Usage of the task so far.' },
)

/** A task's output in webhook events. */
export const EventOutput = Type.Object({
  content: text,
  data: Nullable(
    Type.Unsafe<Record<string, unknown>>(
      boundedJson(
        { ...FreeObject, description: 'Null if the task has no `output_schema`, or if the data is larger.' },
        taskEventBounds.data_bytes,
      ),
    ),
  ),
  artifacts: Type.Optional(
    Type.Array(Artifact, {
      maxItems: taskEventBounds.artifacts,
      description: 'Files that the task created. Absent if it created none.',
    }),
  ),
})

const error = Type.Object({
  code: Type.String(),
  message: text,
  retryable: Type.Boolean({ description: 'Whether a later retry of the task may succeed.' }),
  step_id: Nullable(Type.String()),
})

const toolCall = {
  call_id: Type.String({ description: 'The tool call that `claimToolCall` returns.' }),
  step_id: Type.String(),
  tool: Type.String(),
}
const approval = {
  approval_id: Type.String(),
  step_id: Type.String(),
  kind: Choice(approvalKinds),
  tool,
}

const budget = {
  budget_id: Nullable(Type.String({ description: "Null for the task's own limits." })),
  scope: Choice([...budgetScopes, 'task']),
  subject: Type.String({ description: 'The resource that the budget limits.' }),
  unit: Choice(['cost_usd', 'tokens', 'steps', 'tool_calls']),
  limit: Type.Number({ minimum: 0 }),
  spent: Type.Number({ minimum: 0 }),
  resets_at: Nullable(Timestamp),
}

/** Members that every event of a task has. */
const common = {
  task: Named(
    'EventTaskState',
    Type.Object({
      id: Type.String(),
      project_id: Type.String(),
      agent_id: Type.String(),
      agent_version: count,
      thread_id: Nullable(Type.String()),
      retried_from: Nullable(Type.String()),
      status: Choice(taskStates, { description: 'As it was once the event had happened.' }),
    }),
  ),
  agent: Type.Object({
    id: Type.String(),
    name: Type.Optional(Type.String({ description: 'Absent if the agent is deleted.' })),
    project_id: Type.String(),
  }),
  sequence: Type.Integer({ minimum: 1, description: 'Number of the event in its task: from 1, without gaps.' }),
  truncated: Type.Boolean({ description: 'Whether a member was cut or omitted because of its size.' }),
}

function ofTask<const P extends TProperties>(members: P) {
  return Type.Object({ ...common, ...members })
}

/** `data` of the task events that webhooks may subscribe to. Long texts are cut; read the task for the whole text. */
export const taskEventPayloads = {
  'task.created': ofTask({
    from_step: Type.Optional(Type.Integer({ minimum: 0, description: 'For a retry: the step that it starts with.' })),
  }),
  'task.started': ofTask({ attempt }),
  'task.waiting': ofTask({
    wait: Type.Object({
      reason: Choice(waitReasons),
      since: Timestamp,
      until: Nullable(Timestamp),
      approval_ids: Type.Array(Type.String(), { maxItems: taskEventBounds.items }),
      tool_call_ids: Type.Optional(Type.Array(Type.String(), { maxItems: taskEventBounds.items })),
      step_ids: Type.Optional(Type.Array(Type.String(), { maxItems: taskEventBounds.items })),
      credential_ids: Type.Optional(Type.Array(Type.String(), { maxItems: taskEventBounds.items })),
    }),
  }),
  'task.resumed': ofTask({ attempt, reason: Nullable(Choice(waitReasons)) }),
  'task.retrying': ofTask({
    attempt: Type.Optional(attempt),
    reason: Type.Optional(
      Choice(['worker_lost', 'handed_back'], { description: 'Why another worker took over the task.' }),
    ),
    retry_in_seconds: Type.Optional(
      Type.Number({ minimum: 0, description: 'Seconds until the failed model call is retried.' }),
    ),
  }),
  'task.completed': ofTask({ output: EventOutput, usage }),
  'task.failed': ofTask({ error, usage }),
  'task.canceled': ofTask({
    reason: Nullable(text),
    effects: calls,
    uncertain: calls,
    cost_usd: cost,
    usage,
    forced: Type.Optional(
      Type.Boolean({ description: 'Whether the task was canceled without a confirmation of its worker.' }),
    ),
  }),
  'task.expired': ofTask({ error, usage }),
  'approval.requested': ofTask({
    ...approval,
    arguments: Nullable(
      Type.Unsafe<Record<string, unknown>>(
        boundedJson(
          { ...FreeObject, description: 'The arguments of the call; null if they are larger.' },
          taskEventBounds.arguments_bytes,
        ),
      ),
    ),
    expires_at: Nullable(Timestamp),
  }),
  'approval.resolved': ofTask({
    ...approval,
    decision: Choice(['approve', 'reject']),
    reason: Nullable(text),
    resolved_by: Nullable(Type.String()),
  }),
  'approval.expired': ofTask({
    ...approval,
    on_timeout: Choice(approvalTimeouts, { description: 'What happens to the call.' }),
  }),
  'tool.requested': ofTask({
    ...toolCall,
    arguments: Nullable(
      Type.Unsafe<Record<string, unknown>>(
        boundedJson(
          { ...FreeObject, description: 'The arguments of the call; null if they are larger.' },
          taskEventBounds.arguments_bytes,
        ),
      ),
    ),
    expires_at: Nullable(Timestamp),
  }),
  'tool.resolved': ofTask({
    ...toolCall,
    error: Nullable(Type.Object({ code: Type.String(), message: text, retryable: Type.Boolean() })),
  }),
  'budget.warning': ofTask(budget),
  'budget.reached': ofTask(budget),
} satisfies Record<TaskEventName, unknown>
