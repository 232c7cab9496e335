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
  email: Nullable(
    Type.String({
      description: 'Only an account with this e-mail address may accept; null if anyone with the link may.',
    }),
  ),
  status: Choice(invitationStatuses),
  created_by: Type.String({ description: 'The user who created the invitation.' }),
  created_at: Timestamp,
  expires_at: Timestamp,
  accepted_at: Nullable(Timestamp),
  accepted_by: Nullable(Type.String({ description: 'The user who accepted the invitation.' })),
  revoked_at: Nullable(Timestamp),
}
const Invitation = Named('Invitation', Type.Object(fields))
const CreatedInvitation = Named(
  'CreatedInvitation',
  Type.Object({
    ...fields,
    url: Type.String({
      description: 'The link to send: a page; the last segment of its path is the token. It is never shown again.',
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
  sdk_note: 'Only this response contains the link.',
  method: 'POST',
  path: '/api/v1/auth/invitations',
  summary: 'Create an invitation',
  description:
    'Creates a link with which one person joins the current organization, once. The service does not send mail. For owners and ' +
    'admins; only owners may invite owners. Only this response contains the link. `Idempotency-Key` is ignored, because ' +
    `the link is not stored. An organization may have ${bounds.invitations_pending} pending invitations.`,
  body: Type.Object({
    role: Choice(roles),
    email: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: emailMax,
        format: 'email',
        description: 'Only an account with this e-mail address may accept. Case-insensitive.',
      }),
    ),
    expires_in_seconds: Type.Optional(
      Type.Integer({
        minimum: invitationLifetime_seconds.min,
        maximum: invitationLifetime_seconds.max,
        default: invitationLifetime_seconds.default,
        description: 'How long the link is valid.',
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
    'Invitations of the current organization, newest first, without their links. Accepted, expired and revoked invitations ' +
    'are kept for 90 days.',
  query: offsetQuery({
    status: Type.Optional(Choice(invitationStatuses, { description: 'Only invitations with this status.' })),
  }),
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
  description: 'The link stops working. Fails with a conflict if the invitation is not pending.',
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
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'invitations.accept',
  method: 'POST',
  path: '/api/v1/auth/invitations/accept',
  summary: 'Accept an invitation',
  description:
    'The signed-in user joins the organization. A link works once: a used, expired, revoked or unknown token ' +
    'gives the same error. If the user is a member already, the role does not change and the link stays valid. The rate limit of ' +
    'sign-ins applies to the address too. A person without an account sends the token to `POST /auth/signup`.',
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
