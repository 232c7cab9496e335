import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  agentParameter,
  boundedJson,
  Choice,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'
import { taskBounds } from '../tasks/tasks.ts'
import { toolCallStates, toolSafeties } from '../tasks/task-lifecycle.ts'

const base = '/api/v1/projects/{project_id}/tool-calls'

const called = {
  id: Type.String(),
  task_id: Type.String(),
  agent_id: Type.String(),
  name: Type.String({ description: 'Name of the tool.' }),
  arguments: Type.Unsafe<unknown>({ description: 'Arguments of the call; they match the parameters of the tool.' }),
  idempotency_key: Type.String({
    description:
      'The same in every attempt. Send it with requests to other systems, so that a repeated call has no further effect.',
  }),
  attempt: Type.Integer({ minimum: 0, description: 'How many times the call was claimed.' }),
}

/** A claimed tool call with its lease. */
export const ClaimedToolCall = Named(
  'ClaimedToolCall',
  Type.Object({
    ...called,
    lease: Type.Object({
      token: Type.String({ description: 'Token for `heartbeat` and `result`. Shown once.' }),
      until: Timestamp,
    }),
  }),
)

/** A call of a client tool. */
export const ToolCall = Named(
  'ToolCall',
  Type.Object({
    ...called,
    status: Choice(toolCallStates, {
      description:
        '`pending`: not claimed. `claimed`: a process has its lease. `unknown`: the lease of an `unsafe` call ended without a result, and a person is asked.',
    }),
    safety: Choice(toolSafeties),
    output: Type.Unsafe<unknown>({ description: 'The result as the model gets it; null if there is none.' }),
    error: Nullable(Type.Object({ code: Type.String(), message: Type.String() })),
    claimed_by: Nullable(Type.String({ description: 'The user whose credential has the lease, or had it last.' })),
    lease_until: Nullable(Timestamp),
    expires_at: Nullable(Type.Unsafe<string>({ ...Timestamp, description: 'When the call times out.' })),
    resolved_by: Nullable(Type.String()),
    resolved_at: Nullable(Timestamp),
    created_at: Timestamp,
  }),
)

const claimedExample = {
  id: 'call_01jcm3x5v8f9a2b4c6d8e0g2h4',
  task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
  agent_id: agentParameter.example,
  name: 'refund',
  arguments: { order: '4711', amount: 12.5 },
  idempotency_key: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4:3',
  attempt: 1,
  lease: { token: 'lease_3q2V8kYcX1m0Zb7sTn4uRf', until: '2026-11-20T09:31:00.000Z' },
}
const { lease: _lease, ...calledExample } = claimedExample
const example = {
  ...calledExample,
  status: 'claimed',
  safety: 'keyed',
  output: null,
  error: null,
  claimed_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  lease_until: '2026-11-20T09:31:00.000Z',
  expires_at: '2026-11-20T10:30:00.000Z',
  resolved_by: null,
  resolved_at: null,
  created_at: '2026-11-20T09:30:00.000Z',
}
const resolvedExample = {
  ...example,
  status: 'completed',
  output: '{"refund":"re_12"}',
  lease_until: null,
  resolved_by: example.claimed_by,
  resolved_at: '2026-11-20T09:30:02.000Z',
}

const common = { error_format: 'agents', tag: 'Tool calls', credentials: anyCredential, extension: true } as const
const ofProject = { ...common, params: { project_id: projectParameter } } as const
const one = {
  ...common,
  path: `${base}/{tool_call_id}`,
  params: {
    project_id: projectParameter,
    tool_call_id: { description: 'The tool call.', example: example.id },
  },
} as const
const leaseToken = Type.String({ minLength: 1, maxLength: 100, description: 'The token of the lease.' })
const leaseSeconds = Type.Integer({
  minimum: bounds.lease_seconds_min,
  maximum: bounds.lease_seconds,
  description: `Length of the lease without a heartbeat, in seconds. Default: ${bounds.lease_seconds_default}.`,
})

export const claimToolCall = defineOperation({
  ...ofProject,
  path: `${base}/claim`,
  id: 'claimToolCall',
  unaudited: 'the call stores claimed_by; claims are frequent and change nothing for other users',
  command: 'tool-calls claim',
  sdk: 'toolCalls.claim',
  method: 'POST',
  summary: 'Claim a tool call',
  description:
    'Claims the oldest pending call of these tools with a lease: no other process gets it until the lease ends. Waits up to `wait` seconds for a call; 204 if there is none. `Idempotency-Key` is ignored: a claimed call without a result is offered again when its lease ends.',
  scope: 'tools:execute',
  bucket: 'tool_calls.work',
  // Each request claims another call, so a repeated request must not get the stored response.
  idempotent: false,
  body: Type.Object({
    tools: Type.Array(Type.String({ minLength: 1, maxLength: bounds.tool_name }), {
      minItems: 1,
      maxItems: bounds.claimed_tools,
      description: 'Names of tools.',
    }),
    lease_seconds: Type.Optional(leaseSeconds),
    wait: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: taskBounds.wait_seconds,
        description: 'Seconds to wait for a call. Default: 0.',
      }),
    ),
  }),
  body_example: { tools: ['refund'], lease_seconds: 60, wait: 0 },
  responses: [
    {
      status: 200,
      description: 'A call with its lease.',
      schema: Named('ToolCallClaim', Type.Object({ tool_call: ClaimedToolCall })),
      example: { tool_call: claimedExample },
    },
    { status: 204, description: 'No call was available in this time.' },
  ],
  problems: ['project_not_found'],
})

export const listToolCalls = defineOperation({
  ...ofProject,
  path: base,
  id: 'listToolCalls',
  command: 'tool-calls list',
  sdk: 'toolCalls.list',
  method: 'GET',
  summary: 'List tool calls',
  description:
    'Calls of client tools, newest first. `status=pending` selects unclaimed calls. Lease tokens are not returned.',
  scope: 'read_tool_calls',
  bucket: 'tasks.read',
  query: offsetQuery({
    status: Type.Optional(Choice(toolCallStates, { description: 'Only calls in this state.' })),
    name: Type.Optional(Type.String({ maxLength: bounds.tool_name, description: 'Only calls of this tool.' })),
    task_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only calls of this task.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of tool calls.',
      schema: Named('ToolCallList', Type.Object({ tool_calls: Type.Array(ToolCall), pagination: OffsetPagination })),
      example: { tool_calls: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getToolCall = defineOperation({
  ...one,
  id: 'getToolCall',
  command: 'tool-calls get',
  sdk: 'toolCalls.get',
  method: 'GET',
  summary: 'Read a tool call',
  description: 'The call with its claim and its result.',
  scope: 'read_tool_calls',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The tool call.', schema: ToolCall, example }],
  problems: ['project_not_found', 'tool_call_not_found'],
})

export const extendToolCall = defineOperation({
  ...one,
  path: `${one.path}/heartbeat`,
  id: 'extendToolCall',
  unaudited: 'a heartbeat of the process that claimed the call',
  command: 'tool-calls heartbeat',
  sdk: 'toolCalls.heartbeat',
  method: 'POST',
  summary: 'Extend a lease',
  description:
    'Extends the lease by its original length. 409 `task_canceled` if the task has ended, `lease_lost` if the lease has: stop work on the call in both cases.',
  scope: 'tools:execute',
  bucket: 'tool_calls.work',
  idempotent: false,
  body: Type.Object({ lease: leaseToken }),
  body_example: { lease: claimedExample.lease.token },
  responses: [
    {
      status: 200,
      description: 'The extended lease.',
      schema: Named('ToolCallLease', Type.Object({ until: Timestamp })),
      example: { until: claimedExample.lease.until },
    },
  ],
  problems: ['project_not_found', 'tool_call_not_found', 'lease_lost', 'task_canceled'],
})

export const resolveToolCall = defineOperation({
  ...one,
  path: `${one.path}/result`,
  id: 'resolveToolCall',
  audit: 'tool_call.resolved',
  command: 'tool-calls resolve',
  sdk: 'toolCalls.resolve',
  method: 'POST',
  summary: 'Resolve a tool call',
  description:
    "Requires exactly one of `output` and `error`. The first result wins: a second one is refused with 409 `tool_call_already_resolved`, which contains the user and the time of the first. With `lease`, the lease must be valid (else 409 `lease_lost`); without it, any credential with the scope may resolve the call. An `output` that does not match the tool's `result_schema` is refused with 422, and the call stays open. The model gets a text unchanged and anything else as JSON, up to 100,000 characters.",
  scope: 'tools:execute',
  bucket: 'tool_calls.work',
  body: Type.Object({
    lease: Type.Optional(leaseToken),
    output: Type.Optional(
      Type.Unsafe<unknown>(
        boundedJson(
          { 'x-verbatim': true, 'x-null': true, description: 'The result: any JSON, also null.' },
          bounds.tool_result_bytes,
        ),
      ),
    ),
    error: Type.Optional(
      Type.Object(
        {
          code: Type.String({ minLength: 1, maxLength: bounds.tool_error_code }),
          message: Type.String({ minLength: 1, maxLength: bounds.tool_error_message }),
        },
        { description: 'Fails the call; the model gets the message.' },
      ),
    ),
  }),
  body_example: { output: { refund: 're_12' } },
  responses: [{ status: 200, description: 'The resolved tool call.', schema: ToolCall, example: resolvedExample }],
  problems: [
    'project_not_found',
    'tool_call_not_found',
    'tool_call_already_resolved',
    'lease_lost',
    'task_canceled',
    'invalid_tool_result',
  ],
})

export const toolCallOperations: Operation[] = [
  claimToolCall,
  listToolCalls,
  getToolCall,
  extendToolCall,
  resolveToolCall,
] as Operation[]
