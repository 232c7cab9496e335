import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { boundedJson, Choice, FreeObject, Named, Nullable, projectParameter, Timestamp } from '../core/schemas.ts'
import { QueueName } from '../resources/agents.ts'
import { createTask, Task, taskBounds, TaskStep } from './tasks.ts'
import { taskStates, toolSafeties, waitReasons } from './task-lifecycle.ts'

const base = '/api/v1/projects/{project_id}/work'

/** Types of steps of a worker: a tool call, or a model call that does not use the gateway of the service. */
export const workStepTypes = ['tool_call', 'model_call'] as const
/** What a worker must do with a step. */
export const workStepActions = ['begin', 'replay', 'wait', 'denied'] as const
export type WorkStepAction = (typeof workStepActions)[number]
/** Commands to a worker in the response to a heartbeat. */
export const workCommands = ['pause', 'cancel', 'stop'] as const
export type WorkCommand = (typeof workCommands)[number]

const lease = Type.Object({
  token: Type.String({ description: "Bearer token of the worker's requests for this task. Shown once." }),
  attempt: Type.Integer({
    minimum: 1,
    description: 'Fencing number: every claim of the task increments it.',
  }),
  until: Timestamp,
})

/** A message of a task's conversation for a worker. */
const WorkMessage = Named(
  'WorkMessage',
  Type.Object({
    role: Choice(['system', 'user', 'assistant', 'tool'] as const),
    content: Type.String(),
    parts: Type.Optional(Type.Array(FreeObject, { description: 'The parts of the message, if it contains files.' })),
    tool_calls: Type.Optional(Type.Array(FreeObject)),
    tool_call_id: Type.Optional(Type.String()),
    tool_name: Type.Optional(Type.String()),
  }),
)

/** A task that a worker has claimed. */
export const ClaimedWork = Named(
  'ClaimedWork',
  Type.Object({
    task: Task,
    messages: Type.Array(WorkMessage, {
      description:
        "The conversation: the agent's system prompt, earlier messages of the thread, the input, and later messages.",
    }),
    journal: Type.Array(TaskStep, { description: 'The steps so far, including those of earlier workers.' }),
    lease,
  }),
)

const token = 'lease_dGhlIG5vbmNlIG9mIGEgbGVhc2UfMHh8c2lnbmVkIGJ5IHRoaXMgc2VydmljZSBhbmQgbm8gb3Ro'
const taskExample = createTask.responses[0].example
const until = '2026-11-20T09:31:00.000Z'
const claimedExample = {
  task: { ...taskExample, status: 'running', started_at: '2026-11-20T09:30:00.010Z' },
  messages: [{ role: 'user', content: 'What are your opening hours?' }],
  journal: [],
  lease: { token, attempt: 1, until },
}
const stepId = 'step_01jcm3x5v8f9a2b4c6d8e0g2h4'

const common = { error_format: 'agents', tag: 'Remote work', extension: true } as const
const params = { project_id: projectParameter }
const byLease = {
  ...common,
  params,
  method: 'POST',
  credentials: ['lease'],
  // The scope of the credential that claimed the task.
  scope: 'work:execute',
  bucket: 'work.lease',
  without_command: 'only a worker with the lease calls it',
  // Fenced by the lease, and safe to repeat without a key.
  idempotent: false,
} as const
const leaseProblems = ['project_not_found', 'lease_lost', 'task_canceled'] as const

export const claimWork = defineOperation({
  ...common,
  params,
  credentials: anyCredential,
  path: `${base}/claim`,
  id: 'claimWork',
  unaudited: 'events and log of the task have the attempt and the worker',
  command: 'work claim',
  sdk: 'work.claim',
  method: 'POST',
  summary: 'Claim a task',
  description:
    'Claims the task with the highest priority that waits in one of these queues, oldest first, with a lease: no other worker gets it until the lease ends. Waits up to `wait` seconds for a task; 204 if there is none. All further requests for the task use the token of the lease as `Authorization: Bearer`. `Idempotency-Key` is ignored: a claimed task without heartbeats is offered again.',
  scope: 'work:execute',
  bucket: 'work.claim',
  idempotent: false,
  body: Type.Object({
    queues: Type.Array(QueueName, { minItems: 1, maxItems: bounds.work_queues, description: 'Names of queues.' }),
    lease_seconds: Type.Optional(
      Type.Integer({
        minimum: bounds.lease_seconds_min,
        maximum: bounds.lease_seconds,
        description: `Length of the lease without a heartbeat, in seconds. Default: ${bounds.lease_seconds_default}.`,
      }),
    ),
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: taskBounds.wait_seconds,
        description: 'Seconds to wait for a task. Default: 0.',
      }),
    ),
    worker: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.work_worker,
        description: 'Display name of the worker.',
      }),
    ),
  }),
  body_example: { queues: ['support'], lease_seconds: 60, wait: 0, worker: 'worker-1' },
  responses: [
    {
      status: 200,
      description: 'A task with its lease.',
      schema: Named('WorkClaim', Type.Object({ work: ClaimedWork })),
      example: { work: claimedExample },
    },
    { status: 204, description: 'No task was available in this time.' },
  ],
  problems: ['project_not_found'],
})

export const heartbeatWork = defineOperation({
  ...byLease,
  path: `${base}/heartbeat`,
  id: 'heartbeatWork',
  unaudited: 'a heartbeat of the worker that has the task',
  sdk: 'work.heartbeat',
  summary: 'Extend a lease',
  description:
    'Extends the lease by its original length. `command` says what to do. `pause`: the task waits for something, or its agent was paused; call `park` soon. `stop`: the agent was stopped; call `park` immediately. `cancel`: call `complete` or `fail` immediately; a worker that has not by `deadline` loses the lease.',
  body: Type.Object({}),
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The extended lease.',
      schema: Named(
        'WorkHeartbeat',
        Type.Object({
          until: Timestamp,
          command: Nullable(Choice(workCommands)),
          deadline: Nullable(
            Type.Unsafe<string>({
              ...Timestamp,
              description: 'When the lease ends for good or the task times out; null if neither is set.',
            }),
          ),
          messages: Type.Array(WorkMessage, {
            description: 'Messages that people sent to the task since the last heartbeat.',
          }),
        }),
      ),
      example: { until, command: null, deadline: null, messages: [] },
    },
  ],
  problems: leaseProblems,
})

export const beginWorkStep = defineOperation({
  ...byLease,
  path: `${base}/steps`,
  id: 'beginWorkStep',
  unaudited: 'the journal of the task has the step',
  sdk: 'work.beginStep',
  summary: 'Start a step',
  description:
    'Call this before a side effect; it journals the start of the step. `begin`: do it, then finish the step. `replay`: it is done already, by this or an earlier worker; `output` or `error` is its result. `wait`: it waits for a person or a budget, see `wait`; repeat the request later, or `park` the task. `denied`: do not do it. A step that an earlier worker started but did not finish is started again if its `safety` is `safe` or `keyed`; for an `unsafe` step a person gives the outcome.',
  body: Type.Object({
    key: Type.String({
      minLength: 1,
      maxLength: bounds.work_step_key,
      description: 'Identifies the step in the task; must be the same in every attempt.',
    }),
    type: Choice(workStepTypes),
    name: Type.String({
      minLength: 1,
      maxLength: bounds.config_tool,
      description: "The tool or the model. `tool_policies` of the agent's configuration apply.",
    }),
    input: Type.Optional(
      Type.Unsafe<unknown>(
        boundedJson({ 'x-verbatim': true, description: 'Input of the step.' }, bounds.work_step_bytes),
      ),
    ),
    safety: Type.Optional(
      Choice(toolSafeties, {
        description: 'Default: `unsafe`. Always `safe` for a step of type `model_call`.',
      }),
    ),
  }),
  body_example: { key: 'refund-4711', type: 'tool_call', name: 'refund', input: { order: '4711' }, safety: 'keyed' },
  responses: [
    {
      status: 200,
      description: 'What to do with the step.',
      schema: Named(
        'WorkStep',
        Type.Object({
          action: Choice(workStepActions),
          step_id: Type.String(),
          attempt: Type.Integer({ minimum: 1 }),
          input: Type.Optional(
            Type.Unsafe<unknown>({
              description: 'For `begin`: the input, possibly edited by the person who approved it.',
            }),
          ),
          idempotency_key: Type.Optional(
            Type.String({
              description: 'For `begin`: a key for requests to other systems, the same in every attempt.',
            }),
          ),
          output: Type.Optional(Type.Unsafe<unknown>({ description: 'For `replay`: the result.' })),
          error: Type.Optional(
            Nullable(
              Type.Object(
                { code: Type.String(), message: Type.String() },
                { description: 'For `denied`, and for a `replay` of a failed step.' },
              ),
            ),
          ),
          wait: Type.Optional(
            Type.Object(
              { reason: Choice(waitReasons), approval_id: Nullable(Type.String()) },
              { description: 'For `wait`: what the step waits for.' },
            ),
          ),
        }),
      ),
      example: {
        action: 'begin',
        step_id: stepId,
        attempt: 1,
        input: { order: '4711' },
        idempotency_key: `${taskExample['id']}:0`,
      },
    },
  ],
  problems: [...leaseProblems, 'step_key_taken', 'task_already_finished'],
})

const workError = Type.Object({
  code: Type.String({ minLength: 1, maxLength: bounds.tool_error_code }),
  message: Type.String({ minLength: 1, maxLength: bounds.tool_error_message }),
})

export const finishWorkStep = defineOperation({
  ...byLease,
  path: `${base}/steps/{step_id}/finish`,
  params: { ...params, step_id: { description: 'The step.', example: stepId } },
  id: 'finishWorkStep',
  unaudited: 'the journal of the task has the result',
  sdk: 'work.finishStep',
  summary: 'Finish a step',
  description:
    'Requires exactly one of `output` and `error`. Repeating the request with the same result gives the same response; with another result it fails with 409 `step_already_finished`. For a `model_call`, `usage` is counted and charged at the price of its model.',
  body: Type.Object({
    output: Type.Optional(
      Type.Unsafe<unknown>(
        boundedJson(
          { 'x-verbatim': true, 'x-null': true, description: 'The result: any JSON, also null.' },
          bounds.work_step_bytes,
        ),
      ),
    ),
    error: Type.Optional(workError),
    usage: Type.Optional(
      Type.Object({
        input_tokens: Type.Integer({ minimum: 0, maximum: bounds.config_max_tokens }),
        output_tokens: Type.Integer({ minimum: 0, maximum: bounds.config_max_tokens }),
        cached_tokens: Type.Optional(Type.Integer({ minimum: 0, maximum: bounds.config_max_tokens })),
      }),
    ),
  }),
  body_example: { output: { refund: 're_12' } },
  responses: [
    {
      status: 200,
      description: 'The finished step.',
      schema: Named(
        'FinishedWorkStep',
        Type.Object({ step_id: Type.String(), status: Choice(['completed', 'failed'] as const) }),
      ),
      example: { step_id: stepId, status: 'completed' },
    },
  ],
  problems: [...leaseProblems, 'step_not_found', 'step_already_finished'],
})

export const recordWorkEvents = defineOperation({
  ...byLease,
  path: `${base}/events`,
  id: 'recordWorkEvents',
  unaudited: 'the events are part of the task',
  sdk: 'work.events',
  summary: 'Publish events',
  description:
    'Publishes events to watchers of the task. `message.delta`: text of a message while it is written; it is not stored. `message`: a whole message, stored as an event of the task. Text from the model gateway is published automatically.',
  body: Type.Object({
    events: Type.Array(
      Type.Object({
        type: Choice(['message.delta', 'message'] as const),
        message_id: Type.String({
          minLength: 1,
          maxLength: 100,
          pattern: '^[A-Za-z0-9_-]*$',
          description: 'Your id of the message, or the id that the service gave it.',
        }),
        content: Type.String({ minLength: 1, maxLength: taskBounds.input }),
      }),
      { minItems: 1, maxItems: bounds.work_events },
    ),
  }),
  body_example: { events: [{ type: 'message', message_id: 'm1', content: 'Looking up the order.' }] },
  responses: [
    {
      status: 200,
      description: 'The events are published.',
      schema: Named(
        'WorkEvents',
        Type.Object({ recorded: Type.Integer({ minimum: 0, description: 'Number of stored events.' }) }),
      ),
      example: { recorded: 1 },
    },
  ],
  problems: leaseProblems,
})

const WorkEnded = Named(
  'WorkEnded',
  Type.Object({
    task_id: Type.String(),
    status: Choice(taskStates, { description: 'Current status of the task.' }),
  }),
)
const ended = (status: string) => ({
  status: 200,
  description: 'The lease has ended.',
  schema: WorkEnded,
  example: { task_id: taskExample['id'], status },
})

export const completeWork = defineOperation({
  ...byLease,
  path: `${base}/complete`,
  id: 'completeWork',
  audit: 'work.completed',
  sdk: 'work.complete',
  summary: 'Complete the task',
  description:
    'Completes the task with its output, and ends the lease. `data` must match the `output_schema` if there is one; otherwise the response is 422 and the task stays open. If a cancellation was requested, the task is canceled instead.',
  body: Type.Object({
    output: Type.Object({
      content: Type.String({ maxLength: bounds.work_step_bytes }),
      data: Type.Optional(Type.Unsafe<unknown>(boundedJson({ 'x-verbatim': true }, bounds.work_step_bytes))),
    }),
  }),
  body_example: { output: { content: 'We are open from nine to five.' } },
  responses: [ended('completed')],
  problems: [...leaseProblems, 'invalid_output'],
})

export const failWork = defineOperation({
  ...byLease,
  path: `${base}/fail`,
  id: 'failWork',
  audit: 'work.failed',
  sdk: 'work.fail',
  summary: 'Fail the task',
  description:
    'Fails the task, and ends the lease. If the task waits for an approval or a budget, it is parked instead and offered again after the wait. If a cancellation was requested, the task is canceled instead.',
  body: Type.Object({
    error: Type.Object({
      ...workError.properties,
      retryable: Type.Optional(
        Type.Boolean({ description: 'Whether a later retry of the task may succeed. Default: false.' }),
      ),
    }),
  }),
  body_example: { error: { code: 'order_not_found', message: 'There is no order 4711.' } },
  responses: [ended('failed')],
  problems: leaseProblems,
})

export const parkWork = defineOperation({
  ...byLease,
  path: `${base}/park`,
  id: 'parkWork',
  unaudited: 'the events and the log of the task have it',
  sdk: 'work.park',
  summary: 'Park the task',
  description:
    'Ends the lease; the task waits without a worker. It is offered again when its wait ends (an approval, a budget, a tool result or a message), or at `until`. If it waits for nothing, it is offered immediately.',
  body: Type.Object({
    reason: Type.Optional(
      Type.String({
        maxLength: bounds.work_reason,
        description: 'Why the task is parked. `input` waits for a message to the task; any other text is only logged.',
      }),
    ),
    until: Type.Optional(
      Nullable(
        Type.String({ format: 'timestamp', description: 'Time at which the task is offered again at the latest.' }),
      ),
    ),
  }),
  body_optional: true,
  body_example: { reason: 'The shop opens tomorrow.', until: '2026-11-21T08:00:00.000Z' },
  responses: [ended('waiting')],
  problems: leaseProblems,
})

export const workOperations: Operation[] = [
  claimWork,
  heartbeatWork,
  beginWorkStep,
  finishWorkStep,
  recordWorkEvents,
  completeWork,
  failWork,
  parkWork,
] as Operation[]
