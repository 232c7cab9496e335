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

/** Default time for which the previous secret and address stay valid. */
export const triggerOverlap_seconds = 86_400

const path = Type.String({
  maxLength: triggerBounds.path,
  pattern: `^${triggerPathPattern}$`,
  description: 'A path in a delivery: `body.issue.title`, `headers.x-github-event`, `body.items.0`.',
})
const name = NameText(triggerBounds.name, 'Display name; need not be unique.')
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
    'The secret that authenticates the sender. It is never returned. If it is absent, and the source is not `slack`, `stripe` or `linear`, whose senders create it, the service generates one and returns it only in this response.',
})

/** The HMAC signature of a custom sender. */
export const HmacForm = Named(
  'TriggerHmac',
  Type.Object({
    header,
    algorithm: Type.Optional(Choice(hmacAlgorithms, { default: 'sha256' })),
    encoding: Type.Optional(Choice(hmacEncodings, { default: 'hex' })),
    prefix: Type.Optional(
      Type.String({
        maxLength: triggerBounds.prefix,
        description: 'Text before the signature in the header, such as `sha256=`.',
      }),
    ),
    timestamp_header: Type.Optional({
      ...header,
      description: `The header with the timestamp, in seconds or milliseconds. If set, the sender signs \`<timestamp>.<body>\`, and the timestamp may differ from the current time by up to ${triggerBounds.tolerance_seconds} seconds.`,
    }),
  }),
)

const condition = Type.Unsafe<FilterCondition>(
  Type.Object({
    path,
    op: Choice(filterOperators),
    value: Type.Optional(
      Type.Unsafe<unknown>({
        'x-verbatim': true,
        'x-null': true,
        description:
          'The value to compare with. `in`: a list. `contains`: a part of a text or an element of a list. `exists`: false requires that the path has no value.',
      }),
    ),
  }),
)
const filter = Type.Unsafe<FilterCondition[]>(
  boundedJson(
    Type.Array(condition, {
      maxItems: triggerBounds.filter,
      description: 'Conditions that a delivery must all meet. A delivery that fails one is stored but starts no task.',
    }),
    triggerBounds.filter_bytes,
  ),
)
type Template = string | Record<string, unknown>
const inputText =
  'Template of the input of the task. `{{body.issue.title}}` is replaced by that value of the delivery. An object if the agent has an `input_schema`. Default: the whole body.'
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
    'Deliveries with the same key continue one thread: `{{body.repository.full_name}}#{{body.issue.number}}`.',
})
const action = Choice(triggerActions, {
  description:
    '`start` starts a task. `message` sends a message to the task that waits for input in the thread of the delivery, or starts a task if none waits; it requires a `thread_key`.',
})
const dedupe = Type.String({
  ...path,
  description:
    'Path of the delivery id that detects duplicates. Default: the id that the source defines, or else the bytes of the body for 24 hours.',
})
const priority = Type.Integer({ minimum: 0, maximum: taskBounds.priority, description: 'Priority of the tasks.' })
const timeout_seconds = Type.Integer({
  minimum: 1,
  maximum: taskBounds.timeout_seconds,
  description: 'A task of the trigger expires so many seconds after its start.',
})
const overlap_seconds = Type.Integer({
  minimum: 0,
  maximum: triggerBounds.overlap_seconds,
  default: triggerOverlap_seconds,
  description: 'How long the previous address and secret stay valid; 0 ends them immediately.',
})
const url = Type.String({
  description: 'The address that the sender posts to. Keep it secret. It is never shown again.',
})
const count = (description: string) => Type.Integer({ minimum: 0, description })

const fields = {
  id: Type.String({ description: 'The identifier. It is not secret and not part of the address.' }),
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
  accepted: count('Deliveries that started a task or sent a message to one.'),
  filtered: count('Deliveries that were stored but started no task.'),
  duplicates: count('Repeated deliveries.'),
  refused: count('Requests whose signature or token was missing, wrong or too old. They are not stored.'),
  last_delivery_at: Nullable(Timestamp),
  last_task_id: Nullable(Type.String()),
  last_refused_at: Nullable(Timestamp),
  last_error: Nullable(
    Type.Object(
      { code: Type.String(), message: Type.String(), at: Timestamp },
      { description: 'Why the last authenticated delivery could not be accepted; null after the next accepted one.' },
    ),
  ),
  previous_secret_expires_at: Nullable({
    ...Timestamp,
    description: 'When the previous secret stops working; null if only the current one works.',
  }),
  previous_url_expires_at: Nullable({
    ...Timestamp,
    description: 'When the previous address stops working; null if only the current one works.',
  }),
  created_by: Type.String({ description: 'The user on whose behalf the trigger creates tasks.' }),
  created_at: Timestamp,
  updated_at: Timestamp,
}

/** A trigger: a delivery to its address creates a task of an agent. */
export const Trigger = Named('Trigger', Type.Object(fields))

const shownSecret = Type.Optional(
  Type.String({ description: 'The secret if the service generated it. It is never shown again.' }),
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

/** Members that all operations on triggers share. */
export const ofTriggers = {
  ...({ error_format: 'agents', tag: 'Triggers', credentials: anyCredential, extension: true } as const),
  path: base,
  params: { project_id: projectParameter },
} as const
/** Members that operations on one trigger share. */
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
  description: 'Triggers of a project, newest first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    agent_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only triggers of this agent.' })),
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
    'Creates an address. From now on, each authenticated delivery to it creates exactly one task of the agent, on behalf of the user who created the trigger.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    agent_id: Type.String({ minLength: 1, maxLength: 100, description: 'The agent that gets the tasks.' }),
    name: Type.Optional(NameText(triggerBounds.name, 'Display name; need not be unique. Default: the source.')),
    source: Choice(triggerSources, { description: 'The sender; it decides how deliveries are authenticated.' }),
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
      description: 'The trigger with its address, and its secret if the service generated it.',
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
  description: 'The trigger with counts of its deliveries, without its address and secret.',
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
    'Given members replace, absent members stay; `budget` and `metadata` are merged as JSON Merge Patch (RFC 7396). After a change of `secret`, the previous secret stays valid for 24 hours. Agent, source and owner of a trigger cannot change.',
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
  description: 'From now on its address returns 404, and its deliveries cannot be read. Its tasks stay.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The trigger is deleted.',
      schema: Confirmation({ trigger_id: Type.String() }),
      example: { message: 'Trigger deleted', trigger_id: triggerExample.id },
    },
  ],
  problems: ['project_not_found', 'trigger_not_found'],
})

const actionTexts = {
  pause: 'Deliveries are still accepted and stored, but start no tasks. They can be replayed later.',
  resume: 'New deliveries start tasks again. Deliveries that arrived during the pause do not.',
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
    description: `${actionTexts[verb]} If the trigger is already in that state, the response is the same and nothing changes.`,
    scope: 'agents:write',
    bucket: 'tasks.action',
    responses: [
      {
        status: 200,
        description: 'The new state of the trigger.',
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
    'Creates a new address, and sets a new secret: the given one, or a generated one unless the sender creates secrets. Only this response contains them (and its repetition for the same `Idempotency-Key`). The previous address and secret stay valid for `overlap_seconds`; older ones stop working.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({ secret: Type.Optional(secret), overlap_seconds: Type.Optional(overlap_seconds) }),
  body_example: { overlap_seconds: 3600 },
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The trigger with its new address, and its new secret if the service generated it.',
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
