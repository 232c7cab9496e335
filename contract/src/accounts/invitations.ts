import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Joined, joinedExample } from './organizations.ts'
import {
  Choice,
  Confirmation,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  Timestamp,
} from '../core/schemas.ts'
import { roles } from '../core/scopes.ts'
import { emailMax, InvitationToken } from './users.ts'

const common = {
  error_format: 'agents',
  tag: 'Invitations',
  credentials: anyCredential,
  scope: 'organizations:write',
  bucket: 'general',
  extension: true,
} as const

/** States of an invitation. Only a pending one can be accepted, and no state leads back to pending. */
export const invitationStatuses = ['pending', 'accepted', 'expired', 'revoked'] as const
export type InvitationStatus = (typeof invitationStatuses)[number]

/** Bounds of an invitation's life. */
export const invitationLifetime_seconds = { min: 60, default: 7 * 86_400, max: 30 * 86_400 } as const

const fields = {
  id: Type.String(),
  role: Choice(roles),
  email: Nullable(Type.String({ description: 'The only address that may accept it; null: everyone with the link.' })),
  status: Choice(invitationStatuses),
  created_by: Type.String({ description: 'The user who invited.' }),
  created_at: Timestamp,
  expires_at: Timestamp,
  accepted_at: Nullable(Timestamp),
  accepted_by: Nullable(Type.String({ description: 'The user who joined by it.' })),
  revoked_at: Nullable(Timestamp),
}
const Invitation = Named('Invitation', Type.Object(fields))
const CreatedInvitation = Named(
  'CreatedInvitation',
  Type.Object({
    ...fields,
    url: Type.String({
      description: 'The link to hand over: a page, whose last segment is the token. It is never shown again.',
    }),
  }),
)
const example = {
  id: 'inv_01jcm3x5v8f9a2b4c6d8e0g2h4',
  role: 'member',
  email: 'grace@example.com',
  status: 'pending',
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  expires_at: '2026-11-27T09:30:00.000Z',
  accepted_at: null,
  accepted_by: null,
  revoked_at: null,
}
const tokenExample = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'

export const createInvitation = defineOperation({
  ...common,
  id: 'createInvitation',
  audit: 'invitation.created',
  command: 'invitations create',
  sdk: 'invitations.create',
  sdk_note: 'The link is in this answer only.',
  method: 'POST',
  path: '/api/v1/auth/invitations',
  summary: 'Create an invitation',
  description:
    'Makes a link by which one person joins the current organization, once; the service sends no mail. For owners and ' +
    'admins; only owners invite owners. The link is in this answer and nowhere else: `Idempotency-Key` is ignored, because ' +
    `it is not kept. An organization may have ${bounds.invitations_pending} pending invitations.`,
  body: Type.Object({
    role: Choice(roles),
    email: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: emailMax,
        format: 'email',
        description: 'Only an account with this address may accept. Compared without regard to case.',
      }),
    ),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: invitationLifetime_seconds.min,
        maximum: invitationLifetime_seconds.max,
        default: invitationLifetime_seconds.default,
        description: 'How long the link works.',
      }),
    ),
  }),
  body_example: { role: 'member', email: 'grace@example.com' },
  responses: [
    {
      status: 201,
      description: 'The invitation with its link.',
      schema: CreatedInvitation,
      example: { ...example, url: `https://cadre.example.com/invite/${tokenExample}` },
    },
  ],
  problems: ['resource_conflict'],
  idempotent: false,
})

export const listInvitations = defineOperation({
  ...common,
  id: 'listInvitations',
  command: 'invitations list',
  sdk: 'invitations.list',
  method: 'GET',
  path: '/api/v1/auth/invitations',
  summary: 'List invitations',
  description:
    'Those of the current organization, newest first, without their links. One that was accepted, has expired or was ' +
    'revoked is kept for 90 days.',
  query: offsetQuery({ status: Type.Optional(Choice(invitationStatuses, { description: 'Only these.' })) }),
  responses: [
    {
      status: 200,
      description: 'A page of invitations.',
      schema: Named(
        'InvitationList',
        Type.Object({ invitations: Type.Array(Invitation), pagination: OffsetPagination }),
      ),
      example: { invitations: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: [],
})

export const revokeInvitation = defineOperation({
  ...common,
  id: 'revokeInvitation',
  audit: 'invitation.revoked',
  command: 'invitations revoke',
  sdk: 'invitations.revoke',
  method: 'DELETE',
  path: '/api/v1/auth/invitations/{invitation_id}',
  params: { invitation_id: { description: 'The invitation.', example: example.id } },
  summary: 'Revoke an invitation',
  description: 'Its link works no more. One that is not pending is a conflict.',
  responses: [
    {
      status: 200,
      description: 'The invitation is revoked.',
      schema: Confirmation({ invitation_id: Type.String(), revoked_at: Timestamp }),
      example: { message: 'Invitation revoked', invitation_id: example.id, revoked_at: '2026-11-20T10:00:00.000Z' },
    },
  ],
  problems: ['invitation_not_found', 'resource_conflict'],
})

export const acceptInvitation = defineOperation({
  ...common,
  id: 'acceptInvitation',
  audit: 'invitation.accepted',
  without_command: 'only a browser’s session may do it, and the command line has a key or a token',
  sdk: 'invitations.accept',
  method: 'POST',
  path: '/api/v1/auth/invitations/accept',
  summary: 'Accept an invitation',
  description:
    'The signed-in user joins the organization. A link works once: one that was used, has expired, was revoked or never ' +
    'existed gives the same error. A member keeps their role, and the link stays valid. Counted for the address ' +
    'too, like signing in. Without an account, `POST /auth/signup` takes the token.',
  credentials: ['session'],
  scope: null,
  bucket: 'sessions',
  body: Type.Object({ token: InvitationToken }),
  body_example: { token: tokenExample },
  responses: [{ status: 200, description: 'The user is a member.', schema: Joined, example: joinedExample }],
  problems: ['invitation_not_found', 'resource_conflict'],
  personal: true,
})

export const invitationOperations: Operation[] = [
  createInvitation,
  listInvitations,
  acceptInvitation,
  revokeInvitation,
] as Operation[]
