import Type from 'typebox'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  agentParameter,
  boundedJson,
  Choice,
  Confirmation,
  FreeObject,
  Named,
  NameText,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'
import { MetadataInput, TaskBudget } from '../resources/agents.ts'
import { taskBounds } from '../tasks/tasks.ts'
import {
  filterOperators,
  hmacAlgorithms,
  hmacEncodings,
  triggerActions,
  triggerBounds,
  triggerPathPattern,
  triggerSources,
  triggerStates,
  type FilterCondition,
} from './trigger-sources.ts'

const base = '/api/v1/projects/{project_id}/triggers'

/** How long the secret and the address before the current ones are good too, where nothing is said. */
export const triggerOverlap_seconds = 86_400

const path = Type.String({
  maxLength: triggerBounds.path,
  pattern: `^${triggerPathPattern}$`,
  description: 'A place in a delivery: `body.issue.title`, `headers.x-github-event`, `body.items.0`.',
})
const name = NameText(triggerBounds.name, 'For people; it need not be unique.')
const header = Type.String({
  minLength: 1,
  maxLength: triggerBounds.header,
  pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
  description: 'Name of a header.',
})
const secret = Type.Unsafe<string>({
  type: 'string',
  minLength: triggerBounds.secret_min,
  maxLength: triggerBounds.secret,
  'x-secret': true,
  description:
    'What the sender proves itself with. It is written, and never read. Where the sender makes no secret (all sources but `slack`, `stripe` and `linear`), one is made and shown in this answer only.',
})

/** The form of a signature by HMAC, for any sender. */
export const HmacForm = Named(
  'TriggerHmac',
  Type.Object({
    header,
    algorithm: Type.Optional(Choice(hmacAlgorithms, { default: 'sha256' })),
    encoding: Type.Optional(Choice(hmacEncodings, { default: 'hex' })),
    prefix: Type.Optional(
      Type.String({
        maxLength: triggerBounds.prefix,
        description: 'What the header has before the signature, such as `sha256=`.',
      }),
    ),
    timestamp_header: Type.Optional({
      ...header,
      description: `The header with the time of sending, in seconds or milliseconds. Then \`<time>.<body>\` is signed, and the time may be ${triggerBounds.tolerance_seconds} seconds away.`,
    }),
  }),
)

const condition = Type.Unsafe<FilterCondition>(
  Type.Object({
    path,
    op: Choice(filterOperators),
    value: Type.Optional(
      Type.Unsafe<unknown>({
        description:
          'What it is compared with: a list for `in`; for `contains` a part of a text or an element of a list; for `exists` false asks that there is nothing.',
      }),
    ),
  }),
)
const filter = Type.Unsafe<FilterCondition[]>(
  boundedJson(
    Type.Array(condition, {
      maxItems: triggerBounds.filter,
      description: 'All must hold; a delivery for which one does not is kept and starts nothing.',
    }),
    triggerBounds.filter_bytes,
  ),
)
type Template = string | Record<string, unknown>
const inputText =
  'What the agent is asked. `{{body.issue.title}}` stands for what the delivery has there. An object where the agent has an `input_schema`. Without it the agent gets the whole body.'
const text = { type: 'string', minLength: 1, maxLength: triggerBounds.input }
const object = boundedJson({ type: 'object', additionalProperties: true }, triggerBounds.input_bytes)
const input = Type.Unsafe<Template>({ anyOf: [text, object], 'x-verbatim': true, description: inputText })
const nullableInput = Type.Unsafe<Template | null>({
  anyOf: [{ ...text, nullable: true }, object],
  'x-verbatim': true,
  description: inputText,
})
const thread_key = Type.String({
  minLength: 1,
  maxLength: triggerBounds.thread_key,
  description:
    'Deliveries with the same key go on in one thread: `{{body.repository.full_name}}#{{body.issue.number}}`.',
})
const action = Choice(triggerActions, {
  description:
    '`start` starts a task. `message` answers the task that waits for input in the thread of the delivery, and starts one where none waits; it needs a `thread_key`.',
})
const dedupe = Type.String({
  ...path,
  description:
    'Where the identifier of a delivery is. Without it that of the source counts, and where there is none the bytes of the body, for 24 hours.',
})
const priority = Type.Integer({ minimum: 0, maximum: taskBounds.priority, description: 'Of its tasks.' })
const timeout_seconds = Type.Integer({
  minimum: 1,
  maximum: taskBounds.timeout_seconds,
  description: 'A task of it expires this long after it began.',
})
const overlap_seconds = Type.Integer({
  minimum: 0,
  maximum: triggerBounds.overlap_seconds,
  default: triggerOverlap_seconds,
  description: 'How long the ones before are good too; 0 ends them at once.',
})
const url = Type.String({
  description: 'The address that the sender posts to. It is a secret, and it is never shown again.',
})
const count = (description: string) => Type.Integer({ minimum: 0, description })

const fields = {
  id: Type.String({ description: 'No secret: it is not part of the address.' }),
  project_id: Type.String(),
  agent_id: Type.String(),
  name: Type.String(),
  source: Choice(triggerSources),
  hmac: Nullable(HmacForm),
  filter: Type.Array(condition),
  input: Type.Unsafe<Template | null>({
    anyOf: [
      { type: 'string', nullable: true },
      { type: 'object', additionalProperties: true },
    ],
  }),
  thread_key: Nullable(Type.String()),
  action: Choice(triggerActions),
  dedupe: Nullable(Type.String()),
  priority,
  timeout_seconds: Nullable(Type.Integer()),
  budget: FreeObject,
  metadata: FreeObject,
  status: Choice(triggerStates),
  accepted: count('Deliveries that started or answered a task.'),
  filtered: count('Deliveries that were kept and started nothing.'),
  duplicates: count('Deliveries that had come before.'),
  refused: count('Requests whose proof was missing, wrong or too old. They leave no delivery.'),
  last_delivery_at: Nullable(Timestamp),
  last_task_id: Nullable(Type.String()),
  last_refused_at: Nullable(Timestamp),
  last_error: Nullable(
    Type.Object(
      { code: Type.String(), message: Type.String(), at: Timestamp },
      { description: 'Why the last genuine delivery could not be taken; null again with the next one that is.' },
    ),
  ),
  previous_secret_expires_at: Nullable({
    ...Timestamp,
    description: 'Until then the secret before the current one is good too; null where none is.',
  }),
  previous_url_expires_at: Nullable({
    ...Timestamp,
    description: 'Until then the address before the current one is good too; null where none is.',
  }),
  created_by: Type.String({ description: 'The user whose tasks it creates.' }),
  created_at: Timestamp,
  updated_at: Timestamp,
}

/** A trigger: what a sender posts to its address gives an agent a task. */
export const Trigger = Named('Trigger', Type.Object(fields))

const shownSecret = Type.Optional(
  Type.String({ description: 'The secret, where it was made here. It is never shown again.' }),
)
const CreatedTrigger = Named('CreatedTrigger', Type.Object({ ...fields, url, secret: shownSecret }))

export const triggerExample = {
  id: 'trig_01jcm3x5v8f9a2b4c6d8e0g2h4',
  project_id: 'proj_42',
  agent_id: agentParameter.example,
  name: 'New issues',
  source: 'github',
  hmac: null,
  filter: [{ path: 'body.action', op: 'eq', value: 'opened' }],
  input: 'Sort this issue into one of our areas: {{body.issue.title}}',
  thread_key: '{{body.repository.full_name}}#{{body.issue.number}}',
  action: 'start',
  dedupe: null,
  priority: 5,
  timeout_seconds: null,
  budget: {},
  metadata: { team: 'support' },
  status: 'active',
  accepted: 0,
  filtered: 0,
  duplicates: 0,
  refused: 0,
  last_delivery_at: null,
  last_task_id: null,
  last_refused_at: null,
  last_error: null,
  previous_secret_expires_at: null,
  previous_url_expires_at: null,
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}
const urlExample = 'https://cadre.example.com/hooks/qTn0yY4hq2E3r5b1nWJ8u6x9zPpK7sVdLmCfGtRaBcE'
const secretExample = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Vyo2yZ0Tmg='

/** What operations on triggers share. */
export const ofTriggers = {
  ...({ error_format: 'agents', tag: 'Triggers', credentials: anyCredential, extension: true } as const),
  path: base,
  params: { project_id: projectParameter },
} as const
/** What operations on one trigger share. */
export const ofTrigger = {
  ...ofTriggers,
  path: `${base}/{trigger_id}`,
  params: { project_id: projectParameter, trigger_id: { description: 'The trigger.', example: triggerExample.id } },
} as const

export const listTriggers = defineOperation({
  ...ofTriggers,
  id: 'listTriggers',
  command: 'triggers list',
  sdk: 'triggers.list',
  method: 'GET',
  summary: 'List triggers',
  description: 'Triggers of a project, the newest first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    agent_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only those of this agent.' })),
    status: Type.Optional(Choice(triggerStates, { description: 'Only triggers in this state.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of triggers.',
      schema: Named('TriggerList', Type.Object({ triggers: Type.Array(Trigger), pagination: OffsetPagination })),
      example: { triggers: [triggerExample], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const createTrigger = defineOperation({
  ...ofTriggers,
  id: 'createTrigger',
  audit: 'trigger.created',
  command: 'triggers create',
  sdk: 'triggers.create',
  method: 'POST',
  summary: 'Create a trigger',
  description:
    'Makes an address. From now on each genuine delivery that a sender posts there gives the agent a task, exactly one, on behalf of the user who creates the trigger.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    agent_id: Type.String({ minLength: 1, maxLength: 100, description: 'Whose tasks it creates.' }),
    name: Type.Optional(
      NameText(triggerBounds.name, 'For people; it need not be unique. The source, where nothing is said.'),
    ),
    source: Choice(triggerSources, { description: 'Who sends, and so how a delivery proves itself.' }),
    secret: Type.Optional(secret),
    hmac: Type.Optional(HmacForm),
    filter: Type.Optional(filter),
    input: Type.Optional(input),
    thread_key: Type.Optional(thread_key),
    action: Type.Optional({ ...action, default: 'start' }),
    dedupe: Type.Optional(dedupe),
    priority: Type.Optional({ ...priority, default: 5 }),
    timeout_seconds: Type.Optional(timeout_seconds),
    budget: Type.Optional(TaskBudget),
    metadata: Type.Optional(MetadataInput),
  }),
  body_example: {
    agent_id: triggerExample.agent_id,
    name: triggerExample.name,
    source: triggerExample.source,
    filter: triggerExample.filter,
    input: triggerExample.input,
    thread_key: triggerExample.thread_key,
    metadata: triggerExample.metadata,
  },
  responses: [
    {
      status: 201,
      description: 'The trigger, its address, and its secret where it was made here.',
      schema: CreatedTrigger,
      example: { ...triggerExample, url: urlExample, secret: secretExample },
    },
  ],
  problems: ['project_not_found', 'agent_not_found', 'resource_conflict'],
})

export const getTrigger = defineOperation({
  ...ofTrigger,
  id: 'getTrigger',
  command: 'triggers get',
  sdk: 'triggers.get',
  method: 'GET',
  summary: 'Read a trigger',
  description: 'With what became of its deliveries, without its address and its secret.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The trigger.', schema: Trigger, example: triggerExample }],
  problems: ['project_not_found', 'trigger_not_found'],
})

export const updateTrigger = defineOperation({
  ...ofTrigger,
  id: 'updateTrigger',
  audit: 'trigger.updated',
  command: 'triggers update',
  sdk: 'triggers.update',
  method: 'PUT',
  summary: 'Update a trigger',
  description:
    'Given members replace, missing ones stay; `budget` and `metadata` are merged as JSON Merge Patch (RFC 7396). After another `secret` the one before it is good too for 24 hours. Agent, source and owner of a trigger stay.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    name: Type.Optional(name),
    secret: Type.Optional(secret),
    hmac: Type.Optional(HmacForm),
    filter: Type.Optional(filter),
    input: Type.Optional(nullableInput),
    thread_key: Type.Optional(Nullable(thread_key)),
    action: Type.Optional(action),
    dedupe: Type.Optional(Nullable(dedupe)),
    priority: Type.Optional(priority),
    timeout_seconds: Type.Optional(Nullable(timeout_seconds)),
    budget: Type.Optional(TaskBudget),
    metadata: Type.Optional(MetadataInput),
  }),
  body_example: { name: 'Issues that were opened' },
  responses: [{ status: 200, description: 'The trigger.', schema: Trigger, example: triggerExample }],
  problems: ['project_not_found', 'trigger_not_found'],
})

export const deleteTrigger = defineOperation({
  ...ofTrigger,
  id: 'deleteTrigger',
  audit: 'trigger.deleted',
  command: 'triggers delete',
  sdk: 'triggers.delete',
  method: 'DELETE',
  summary: 'Delete a trigger',
  description: 'Its address answers 404 from now on, and its deliveries can no longer be read. Its tasks stay.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The trigger is gone.',
      schema: Confirmation({ trigger_id: Type.String() }),
      example: { message: 'Trigger deleted', trigger_id: triggerExample.id },
    },
  ],
  problems: ['project_not_found', 'trigger_not_found'],
})

const actionTexts = {
  pause: 'Deliveries are still taken and kept, but start nothing; replay them later.',
  resume: 'The next delivery starts a task again. Those that came meanwhile do not.',
} as const

function moves<const Verb extends 'pause' | 'resume'>(verb: Verb) {
  return defineOperation({
    ...ofTrigger,
    path: `${ofTrigger.path}/${verb}`,
    id: `${verb}Trigger`,
    audit: `trigger.${verb}d`,
    command: `triggers ${verb}`,
    sdk: `triggers.${verb}`,
    method: 'POST',
    summary: `${verb === 'pause' ? 'Pause' : 'Resume'} a trigger`,
    description: `${actionTexts[verb]} A trigger that is already there answers the same and does not change.`,
    scope: 'agents:write',
    bucket: 'tasks.action',
    responses: [
      {
        status: 200,
        description: 'The state that the trigger is in now.',
        schema: Named(
          'TriggerActionResult',
          Confirmation({ trigger_id: Type.String(), status: Choice(triggerStates) }),
        ),
        example: {
          message: verb === 'pause' ? 'Trigger paused' : 'Trigger resumed',
          trigger_id: triggerExample.id,
          status: verb === 'pause' ? 'paused' : 'active',
        },
      },
    ],
    problems: ['project_not_found', 'trigger_not_found'],
  })
}

export const pauseTrigger = moves('pause')
export const resumeTrigger = moves('resume')

export const rotateTrigger = defineOperation({
  ...ofTrigger,
  path: `${ofTrigger.path}/rotate`,
  id: 'rotateTrigger',
  audit: 'trigger.rotated',
  command: 'triggers rotate',
  sdk: 'triggers.rotate',
  method: 'POST',
  summary: 'Rotate the address and the secret of a trigger',
  description:
    'Makes another address, and another secret: the given one, or one that is made here where the sender makes none. Both are shown in this answer only (and once more to the same `Idempotency-Key`). The ones before are good too for `overlap_seconds`; ones that were replaced before that are not any more.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({ secret: Type.Optional(secret), overlap_seconds: Type.Optional(overlap_seconds) }),
  body_example: { overlap_seconds: 3600 },
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The trigger, its new address, and its new secret where it was made here.',
      schema: CreatedTrigger,
      example: {
        ...triggerExample,
        url: urlExample,
        secret: secretExample,
        previous_secret_expires_at: '2026-11-20T11:00:00.000Z',
        previous_url_expires_at: '2026-11-20T11:00:00.000Z',
      },
    },
  ],
  problems: ['project_not_found', 'trigger_not_found'],
})

export const triggerOperations: Operation[] = [
  listTriggers,
  createTrigger,
  getTrigger,
  updateTrigger,
  deleteTrigger,
  pauseTrigger,
  resumeTrigger,
  rotateTrigger,
] as Operation[]
