import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
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

const common = {
  error_format: 'agents',
  tag: 'Members',
  credentials: anyCredential,
  bucket: 'general',
  extension: true,
} as const
const one = {
  ...common,
  path: '/api/v1/auth/members/{user_id}',
  params: {
    user_id: { description: 'The member, by their user identifier.', example: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4' },
  },
} as const

const Member = Named(
  'Member',
  Type.Object({
    user_id: Type.String(),
    name: Type.String(),
    email: Type.Optional(
      Type.String({
        description:
          "Present for callers who may manage members (`organizations:write`), and for the caller's own entry.",
      }),
    ),
    avatar_url: Type.String({ description: 'Empty when there is none.' }),
    role: Choice(roles),
    joined_at: Timestamp,
    last_active: Type.Optional(
      Nullable({
        ...Timestamp,
        description:
          'When the member last signed in, or used a key or an app in this organization; null if never. ' +
          'Updated within a few minutes. Present if `email` is.',
      }),
    ),
  }),
)
const example = {
  user_id: one.params.user_id.example,
  name: 'Ada Lovelace',
  email: 'ada@example.com',
  avatar_url: '',
  role: 'member',
  joined_at: '2026-11-20T09:30:00.000Z',
  last_active: '2026-11-23T16:04:00.000Z',
}

export const listMembers = defineOperation({
  ...common,
  id: 'listMembers',
  command: 'members list',
  sdk: 'members.list',
  method: 'GET',
  path: '/api/v1/auth/members',
  summary: 'List members',
  description: 'All members of the current organization, in the order in which they joined.',
  scope: 'organizations:read',
  query: offsetQuery({
    search: Type.Optional(
      Type.String({
        maxLength: bounds.search,
        description: 'Part of the name, or of the e-mail address if the caller may see it. Case-insensitive.',
      }),
    ),
    role: Type.Optional(Choice(roles, { description: 'Only members with this role.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of members.',
      schema: Named('MemberList', Type.Object({ members: Type.Array(Member), pagination: OffsetPagination })),
      example: { members: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: [],
})

export const getMember = defineOperation({
  ...one,
  id: 'getMember',
  command: 'members get',
  sdk: 'members.get',
  method: 'GET',
  summary: 'Read a member',
  description: 'A member of the current organization.',
  scope: 'organizations:read',
  responses: [{ status: 200, description: 'The member.', schema: Member, example }],
  problems: ['member_not_found'],
})

export const updateMember = defineOperation({
  ...one,
  id: 'updateMember',
  audit: 'member.updated',
  command: 'members update',
  sdk: 'members.update',
  method: 'PUT',
  summary: "Change a member's role",
  description:
    'For owners and admins; only owners may grant or change the role of owner. The role of the last owner cannot change. Takes ' +
    'effect with the next request of every credential. If the member may no longer invite, their pending invitations are revoked.',
  scope: 'organizations:write',
  body: Type.Object({ role: Choice(roles) }),
  body_example: { role: 'admin' },
  responses: [{ status: 200, description: 'The member.', schema: Member, example: { ...example, role: 'admin' } }],
  problems: ['member_not_found', 'resource_conflict'],
})

export const removeMember = defineOperation({
  ...one,
  id: 'removeMember',
  audit: 'member.removed',
  command: 'members remove',
  sdk: 'members.remove',
  method: 'DELETE',
  summary: 'Remove a member',
  description:
    'For owners and admins; only owners may remove owners, and the last owner cannot be removed. Immediately ends the API keys and ' +
    'OAuth grants of the member in this organization, and revokes their pending invitations. The account stays, and so do the resources that the member created.',
  scope: 'organizations:write',
  responses: [
    {
      status: 200,
      description: 'The user is no longer a member.',
      schema: Confirmation({ user_id: Type.String() }),
      example: { message: 'Member removed', user_id: example.user_id },
    },
  ],
  problems: ['member_not_found', 'resource_conflict'],
})

export const memberOperations: Operation[] = [listMembers, getMember, updateMember, removeMember] as Operation[]
