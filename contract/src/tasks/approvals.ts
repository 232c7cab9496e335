import Type from 'typebox'
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
import { approvalKinds, approvalStates, approvalTimeouts } from './task-lifecycle.ts'
import { approvalScope } from '../core/scopes.ts'

const base = '/api/v1/projects/{project_id}/approvals'

/** Bounds of a decision on an approval. Lengths count code points. */
export const approvalBounds = {
  reason: 2000,
  result: 100_000,
  arguments_bytes: 262_144,
} as const

/** A decision of a person on a tool call. */
export const Approval = Named(
  'Approval',
  Type.Object({
    id: Type.String(),
    task_id: Type.String(),
    agent_id: Type.String(),
    step_id: Type.String({ description: 'The step that waits for the decision.' }),
    kind: Choice(approvalKinds, {
      description:
        '`tool_call` asks for permission to make a call; `recovery` asks what happened to a call whose outcome is unknown.',
    }),
    status: Choice(approvalStates),
    tool: Type.String(),
    arguments: Type.Unsafe<unknown>({ description: 'The arguments that the model chose.' }),
    call_hash: Type.String({
      description: "SHA-256 of the tool's name and the arguments. Only a call with this hash is made.",
    }),
    approved_arguments: Nullable(
      Type.Unsafe<Record<string, unknown>>({
        type: 'object',
        additionalProperties: true,
        description: 'The edited arguments; null if the decision did not change them.',
      }),
    ),
    result: Nullable(Type.String({ description: 'For a recovery: the result of the call that a person gave.' })),
    on_timeout: Choice(approvalTimeouts, {
      description: 'What happens without a decision until `expires_at`: the call is rejected, or the task is canceled.',
    }),
    resolved_by: Nullable(Type.String()),
    resolved_at: Nullable(Timestamp),
    reason: Nullable(Type.String()),
    expires_at: Nullable(Timestamp),
    created_at: Timestamp,
  }),
)

const example = {
  id: 'appr_01jcm3x5v8f9a2b4c6d8e0g2h4',
  task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
  agent_id: agentParameter.example,
  step_id: 'step_01jcm3x5v8f9a2b4c6d8e0g2h4',
  kind: 'tool_call',
  status: 'pending',
  tool: 'http_request',
  arguments: { method: 'DELETE', url: 'https://shop.example.com/orders/4711' },
  call_hash: '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  approved_arguments: null,
  result: null,
  on_timeout: 'reject',
  resolved_by: null,
  resolved_at: null,
  reason: null,
  expires_at: null,
  created_at: '2026-11-20T09:30:00.000Z',
}
const rejectedExample = {
  ...example,
  status: 'rejected',
  resolved_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  resolved_at: '2026-11-20T09:31:00.000Z',
  reason: 'This order has been shipped.',
}

const common = { error_format: 'agents', tag: 'Approvals', credentials: anyCredential, extension: true } as const
const one = {
  ...common,
  path: `${base}/{approval_id}`,
  params: {
    project_id: projectParameter,
    approval_id: { description: 'The approval.', example: example.id },
  },
} as const

export const listApprovals = defineOperation({
  ...common,
  path: base,
  params: { project_id: projectParameter },
  id: 'listApprovals',
  command: 'approvals list',
  sdk: 'approvals.list',
  method: 'GET',
  summary: 'List approvals',
  description: 'Approvals of the project, newest first. `status=pending` selects those that wait for a decision.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    status: Type.Optional(Choice(approvalStates, { description: 'Only approvals in this state.' })),
    kind: Type.Optional(Choice(approvalKinds, { description: 'Only approvals of this kind.' })),
    agent_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only approvals of this agent.' })),
    task_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only approvals of this task.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of approvals.',
      schema: Named('ApprovalList', Type.Object({ approvals: Type.Array(Approval), pagination: OffsetPagination })),
      example: { approvals: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getApproval = defineOperation({
  ...one,
  id: 'getApproval',
  command: 'approvals get',
  sdk: 'approvals.get',
  method: 'GET',
  summary: 'Read an approval',
  description: 'The call and the decision.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The approval.', schema: Approval, example }],
  problems: ['project_not_found', 'approval_not_found'],
})

export const resolveApproval = defineOperation({
  ...one,
  path: `${one.path}/resolve`,
  id: 'resolveApproval',
  audit: 'approval.resolved',
  command: 'approvals resolve',
  sdk: 'approvals.resolve',
  method: 'POST',
  summary: 'Resolve an approval',
  description:
    'The first decision wins; a second one is refused with 409. For a `tool_call`, `approve` makes the call, with the given `arguments` if any; `reject` refuses it, and the model gets `reason` as its result. For a `recovery`, `approve` repeats the call or, with `result`, counts it as completed; `reject` counts it as failed.',
  scope: approvalScope,
  bucket: 'tasks.action',
  body: Type.Object({
    decision: Choice(['approve', 'reject']),
    arguments: Type.Optional(
      Type.Unsafe<Record<string, unknown>>(
        boundedJson(
          {
            type: 'object',
            additionalProperties: true,
            'x-verbatim': true,
            description: "Only to approve a `tool_call`: edited arguments, which must match the tool's schema.",
          },
          approvalBounds.arguments_bytes,
        ),
      ),
    ),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: approvalBounds.reason })),
    result: Type.Optional(
      Type.String({
        maxLength: approvalBounds.result,
        description: 'Only to approve a `recovery`: the result of the call, which then counts as completed.',
      }),
    ),
  }),
  body_example: { decision: 'reject', reason: rejectedExample.reason },
  responses: [{ status: 200, description: 'The resolved approval.', schema: Approval, example: rejectedExample }],
  problems: ['project_not_found', 'approval_not_found', 'approval_already_resolved'],
})

export const approvalOperations: Operation[] = [listApprovals, getApproval, resolveApproval] as Operation[]
