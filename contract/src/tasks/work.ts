import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { boundedJson, Choice, FreeObject, Named, Nullable, projectParameter, Timestamp } from '../core/schemas.ts'
import { QueueName } from '../resources/agents.ts'
import { createTask, Task, taskBounds, TaskStep } from './tasks.ts'
import { taskStates, toolSafeties, waitReasons } from './task-lifecycle.ts'

const base = '/api/v1/projects/{project_id}/work'

/** What the step of a worker is: a call of a tool, or a call of a model that does not go through the service. */
export const workStepTypes = ['tool_call', 'model_call'] as const
/** What a worker is to do with a step. */
export const workStepActions = ['begin', 'replay', 'wait', 'denied'] as const
export type WorkStepAction = (typeof workStepActions)[number]
/** What a heartbeat tells a worker to do. */
export const workCommands = ['pause', 'cancel', 'stop'] as const
export type WorkCommand = (typeof workCommands)[number]

const lease = Type.Object({
  token: Type.String({ description: 'The bearer token of all that the worker asks for this task. Shown once.' }),
  attempt: Type.Integer({
    minimum: 1,
    description: 'The fencing number: the next claim of the task has a higher one.',
  }),
  until: Timestamp,
})

/** A message of a task's conversation, as a worker gets it. */
const WorkMessage = Named(
  'WorkMessage',
  Type.Object({
    role: Choice(['system', 'user', 'assistant', 'tool'] as const),
    content: Type.String(),
    parts: Type.Optional(Type.Array(FreeObject, { description: 'What it says in parts, where files are among them.' })),
    tool_calls: Type.Optional(Type.Array(FreeObject)),
    tool_call_id: Type.Optional(Type.String()),
    tool_name: Type.Optional(Type.String()),
  }),
)

/** A task that a worker holds. */
export const ClaimedWork = Named(
  'ClaimedWork',
  Type.Object({
    task: Task,
    messages: Type.Array(WorkMessage, {
      description:
        "The conversation: the agent's system prompt, what the thread said before, the input, and messages that came since.",
    }),
    journal: Type.Array(TaskStep, { description: 'The steps so far, of this worker and of those before it.' }),
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
  scope: null,
  bucket: 'work.lease',
  without_command: 'belongs to a worker, which holds the lease',
  // Fenced by the lease, and repeatable by what each of them says.
  idempotent: false,
} as const
const leaseProblems = ['project_not_found', 'lease_lost', 'task_canceled'] as const

export const claimWork = defineOperation({
  ...common,
  params,
  credentials: anyCredential,
  path: `${base}/claim`,
  id: 'claimWork',
  unaudited: 'the task says it itself: its events and its log name the attempt and the worker',
  command: 'work claim',
  sdk: 'work.claim',
  method: 'POST',
  summary: 'Claim a task',
  description:
    'Gives the most urgent task that waits in one of these queues, the oldest first, with a lease: no other worker is given it until the lease ends. Waits up to `wait` seconds for one; 204 where none came. Everything after it takes the token of the lease as `Authorization: Bearer`. Ignores `Idempotency-Key`: a task that is claimed and not worked on is offered again.',
  scope: 'work:execute',
  bucket: 'work.claim',
  idempotent: false,
  body: Type.Object({
    queues: Type.Array(QueueName, { minItems: 1, maxItems: bounds.work_queues, description: 'Names of queues.' }),
    lease_seconds: Type.Optional(
      Type.Integer({
        minimum: bounds.lease_seconds_min,
        maximum: bounds.lease_seconds,
        description: `How long the lease lasts without a heartbeat; ${bounds.lease_seconds_default} by default.`,
      }),
    ),
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: taskBounds.wait_seconds,
        description: 'Seconds to wait for a task; 0 by default.',
      }),
    ),
    worker: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.work_worker,
        description: 'A name of the worker, as people see it.',
      }),
    ),
  }),
  body_example: { queues: ['support'], lease_seconds: 60, wait: 0, worker: 'worker-1' },
  responses: [
    {
      status: 200,
      description: 'A task, and its lease.',
      schema: Named('WorkClaim', Type.Object({ work: ClaimedWork })),
      example: { work: claimedExample },
    },
    { status: 204, description: 'No task came in this time.' },
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
    'The lease lasts as long again as it was claimed for. `command` says what to do: `pause`: the task waits for something, or its agent was paused: end soon by `park`. `stop`: the agent was stopped: the same at once. `cancel`: end at once by `complete` or `fail`; a worker that has not by `deadline` loses the lease.',
  body: Type.Object({}),
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The lease, extended.',
      schema: Named(
        'WorkHeartbeat',
        Type.Object({
          until: Timestamp,
          command: Nullable(Choice(workCommands)),
          deadline: Nullable(
            Type.Unsafe<string>({
              ...Timestamp,
              description:
                'When the lease is taken back, or the time of the task is over; null where neither is known.',
            }),
          ),
          messages: Type.Array(WorkMessage, { description: 'Messages that people sent to the task since.' }),
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
  summary: 'Begin a step',
  description:
    'Asks before something is done, and journals that it begins. `begin`: do it, then give its result. `replay`: it was done, here or by a worker before; `output` or `error` is its result. `wait`: a person or a budget decides, as `wait` says; ask again, or `park` and the task is offered again. `denied`: do not do it. A step that a worker before began and did not finish is begun again where its `safety` is `safe` or `keyed`; of an `unsafe` one a person says what became of it.',
  body: Type.Object({
    key: Type.String({
      minLength: 1,
      maxLength: bounds.work_step_key,
      description: 'Names the step in the task: the same in every attempt.',
    }),
    type: Choice(workStepTypes),
    name: Type.String({
      minLength: 1,
      maxLength: bounds.config_tool,
      description: "The tool or the model; `tool_policies` of the agent's configuration count.",
    }),
    input: Type.Optional(
      Type.Unsafe<unknown>(boundedJson({ description: 'What it begins with.' }, bounds.work_step_bytes)),
    ),
    safety: Type.Optional(
      Choice(toolSafeties, {
        description: '`unsafe` where nothing is said. Of a step of type `model_call` always `safe`.',
      }),
    ),
  }),
  body_example: { key: 'refund-4711', type: 'tool_call', name: 'refund', input: { order: '4711' }, safety: 'keyed' },
  responses: [
    {
      status: 200,
      description: 'What to do.',
      schema: Named(
        'WorkStep',
        Type.Object({
          action: Choice(workStepActions),
          step_id: Type.String(),
          attempt: Type.Integer({ minimum: 1 }),
          input: Type.Optional(
            Type.Unsafe<unknown>({
              description: 'Of `begin`: the input, as a person who approved it may have edited it.',
            }),
          ),
          idempotency_key: Type.Optional(
            Type.String({ description: 'Of `begin`: the same in every attempt, for what the step changes elsewhere.' }),
          ),
          output: Type.Optional(Type.Unsafe<unknown>({ description: 'Of `replay`: the result.' })),
          error: Type.Optional(
            Nullable(
              Type.Object(
                { code: Type.String(), message: Type.String() },
                { description: 'Of `denied`, and of a `replay` of a step that failed.' },
              ),
            ),
          ),
          wait: Type.Optional(
            Type.Object(
              { reason: Choice(waitReasons), approval_id: Nullable(Type.String()) },
              { description: 'Of `wait`: what for.' },
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
  summary: 'Give the result of a step',
  description:
    'Exactly one of `output` and `error`. The same result given again is answered as before; another one is 409 `step_already_finished`. Of a `model_call`, `usage` is counted and charged at the price of its model.',
  body: Type.Object({
    output: Type.Optional(Type.Unsafe<unknown>(boundedJson({ description: 'The result.' }, bounds.work_step_bytes))),
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
      description: 'The step, finished.',
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
  unaudited: 'the events of the task have it',
  sdk: 'work.events',
  summary: 'Tell what happens',
  description:
    'For those who watch the task. `message.delta`: text of a message while it is written, live and not kept. `message`: a whole message, kept as an event of the task. Text from the model gateway is published without this.',
  body: Type.Object({
    events: Type.Array(
      Type.Object({
        type: Choice(['message.delta', 'message'] as const),
        message_id: Type.String({
          minLength: 1,
          maxLength: 100,
          pattern: '^[A-Za-z0-9_-]*$',
          description: 'A name of your own for the message, or the one that the service gave it.',
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
      description: 'They are published.',
      schema: Named('WorkEvents', Type.Object({ recorded: Type.Integer({ minimum: 0, description: 'Events kept.' }) })),
      example: { recorded: 1 },
    },
  ],
  problems: leaseProblems,
})

const WorkEnded = Named(
  'WorkEnded',
  Type.Object({
    task_id: Type.String(),
    status: Choice(taskStates, { description: 'Of the task now.' }),
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
    'Ends the task with its output, and the lease. `data` must fit the `output_schema`, where there is one: else 422, and the task stays open. A task that was to be canceled is canceled.',
  body: Type.Object({
    output: Type.Object({
      content: Type.String({ maxLength: bounds.work_step_bytes }),
      data: Type.Optional(Type.Unsafe<unknown>(boundedJson({}, bounds.work_step_bytes))),
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
  summary: 'Give the task up',
  description:
    'Ends the task as failed, and the lease. While the task waits for an approval or a budget it is parked instead, and offered again when that is settled. A task that was to be canceled is canceled.',
  body: Type.Object({
    error: Type.Object({
      ...workError.properties,
      retryable: Type.Optional(
        Type.Boolean({ description: 'Whether the same task may end well later; false by default.' }),
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
  summary: 'Put the task aside',
  description:
    'Ends the lease; the task waits and holds no worker. It is offered again when what it waits for is settled: an approval, a budget, the result of a tool, a message; or at `until`. Where it waits for nothing, at once.',
  body: Type.Object({
    reason: Type.Optional(
      Type.String({
        maxLength: bounds.work_reason,
        description: '`input` waits for a message to the task. Any other text is for the log.',
      }),
    ),
    until: Type.Optional(
      Nullable(Type.String({ format: 'timestamp', description: 'Offered again at this time at the latest.' })),
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
