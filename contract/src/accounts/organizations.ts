import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, NameText, Named, Timestamp } from '../core/schemas.ts'
import { roles } from '../core/scopes.ts'
import { OrganizationMembership, organizationExample } from './users.ts'

const common = { error_format: 'agents', tag: 'Organizations', bucket: 'general', extension: true } as const

const Organization = Named(
  'Organization',
  Type.Object({
    id: Type.String(),
    name: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
    role: Choice(roles, { description: "The caller's." }),
    member_count: Type.Integer({ minimum: 1 }),
    client_documents: Type.Boolean({
      description:
        'Whether members may let in apps that no administrator registered, known by the address of their metadata document as MCP clients are.',
    }),
  }),
)
const example = {
  id: organizationExample.id,
  name: organizationExample.name,
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
  role: 'owner',
  member_count: 3,
  client_documents: true,
}
const name = NameText(bounds.organization_name, 'What the organization is called.')

export const getOrganization = defineOperation({
  ...common,
  id: 'getOrganization',
  command: 'organization get',
  sdk: 'organization.get',
  method: 'GET',
  path: '/api/v1/auth/organization',
  summary: 'Read the current organization',
  description:
    'The one that the key or grant belongs to; of a cookie session the one that `X-Organization-ID` names, else the ' +
    'one that was joined first. `GET /auth/user` lists all of them.',
  credentials: anyCredential,
  scope: 'organizations:read',
  responses: [{ status: 200, description: 'The organization.', schema: Organization, example }],
  problems: [],
})

export const updateOrganization = defineOperation({
  ...common,
  id: 'updateOrganization',
  audit: 'organization.updated',
  command: 'organization update',
  sdk: 'organization.update',
  method: 'PUT',
  path: '/api/v1/auth/organization',
  summary: 'Update the current organization',
  description:
    'For owners and admins. Names need not be unique. `client_documents: false` also ends the access of all apps that are known by ' +
    'their metadata document.',
  credentials: anyCredential,
  scope: 'organizations:write',
  body: Type.Object({
    name: Type.Optional(name),
    client_documents: Type.Optional(
      Type.Boolean({ description: 'Whether members may let in apps that are known by their metadata document.' }),
    ),
  }),
  body_example: { name: 'Analytical Engines Ltd' },
  responses: [
    {
      status: 200,
      description: 'The organization.',
      schema: Organization,
      example: { ...example, name: 'Analytical Engines Ltd', updated_at: '2026-11-20T10:00:00.000Z' },
    },
  ],
  problems: [],
})

export const createOrganization = defineOperation({
  ...common,
  id: 'createOrganization',
  audit: 'organization.created',
  without_command: 'only a browser’s session may do it, and the command line has a key or a token',
  sdk: 'organization.create',
  method: 'POST',
  path: '/api/v1/auth/organizations',
  summary: 'Create an organization',
  description:
    'The caller becomes its owner. Where accounts are made by invitation (`CADRE_SIGNUP=invite`), only for those who are ' +
    'owner or admin of an organization already. ' +
    `One user may own ${bounds.organizations_owned}.`,
  credentials: ['session'],
  scope: null,
  body: Type.Object({ name }),
  body_example: { name: 'Analytical Engines' },
  responses: [
    {
      status: 201,
      description: 'The organization. The session works in it with `X-Organization-ID`.',
      schema: Organization,
      example: { ...example, member_count: 1 },
    },
  ],
  problems: ['resource_conflict'],
  personal: true,
})

export const leaveOrganization = defineOperation({
  ...common,
  id: 'leaveOrganization',
  audit: 'member.left',
  without_command: 'only a browser’s session may do it, and the command line has a key or a token',
  sdk: 'organization.leave',
  method: 'POST',
  path: '/api/v1/auth/organization/leave',
  summary: 'Leave an organization',
  description:
    'The one that the body names, so that a request that is repeated leaves no second one. ' +
    "Ends the caller's API keys and OAuth grants of the organization at once, and withdraws their invitations; what they " +
    'made stays. The last owner cannot leave. A user who leaves their only organization gets a new one where everyone may ' +
    'make an account (`CADRE_SIGNUP=open`), and stays otherwise: an administrator can remove them.',
  credentials: ['session'],
  scope: null,
  body: Type.Object({ organization_id: Type.String({ maxLength: 64, description: 'Which one.' }) }),
  body_example: { organization_id: organizationExample.id },
  responses: [
    {
      status: 200,
      description: 'The caller has left.',
      schema: Confirmation({ organization_id: Type.String() }),
      example: { message: 'Organization left', organization_id: example.id },
    },
  ],
  problems: ['resource_conflict'],
})

/** A user became a member: the organization as its new member sees it. */
export const Joined = Named('JoinedOrganization', Confirmation({ organization: OrganizationMembership }))
export const joinedExample = {
  message: 'Organization joined',
  organization: { ...organizationExample, role: 'member' },
}

export const organizationOperations: Operation[] = [
  getOrganization,
  updateOrganization,
  createOrganization,
  leaveOrganization,
] as Operation[]
