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
    role: Choice(roles, { description: "The caller's role." }),
    member_count: Type.Integer({ minimum: 1 }),
    client_documents: Type.Boolean({
      description:
        'Whether members may grant access to apps that no administrator registered and that are identified by the URL of their metadata document, as MCP clients are.',
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
const name = NameText(bounds.organization_name, 'Name of the organization.')

export const getOrganization = defineOperation({
  ...common,
  id: 'getOrganization',
  command: 'organization get',
  sdk: 'organization.get',
  method: 'GET',
  path: '/api/v1/auth/organization',
  summary: 'Read the current organization',
  description:
    'The organization of the key or grant. For a cookie session it is the one that `X-Organization-ID` names, or else the ' +
    'one that the user joined first. `GET /auth/user` lists all organizations of the user.',
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
    'For owners and admins. Names need not be unique. `client_documents: false` also ends the grants of all apps that are identified by ' +
    'their metadata document.',
  credentials: anyCredential,
  scope: 'organizations:write',
  body: Type.Object({
    name: Type.Optional(name),
    client_documents: Type.Optional(
      Type.Boolean({
        description: 'Whether members may grant access to apps that are identified by their metadata document.',
      }),
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
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'organization.create',
  method: 'POST',
  path: '/api/v1/auth/organizations',
  summary: 'Create an organization',
  description:
    'The caller becomes its owner. If accounts need an invitation (`CADRE_SIGNUP=invite`), only owners and admins ' +
    'of an organization may create another one. ' +
    `A user may own ${bounds.organizations_owned}.`,
  credentials: ['session'],
  scope: null,
  body: Type.Object({ name }),
  body_example: { name: 'Analytical Engines' },
  responses: [
    {
      status: 201,
      description: 'The organization. To use it, the session sends its id as `X-Organization-ID`.',
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
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'organization.leave',
  method: 'POST',
  path: '/api/v1/auth/organization/leave',
  summary: 'Leave an organization',
  description:
    'The body names the organization, so a repeated request does not leave a second one. ' +
    "Immediately ends the caller's API keys and OAuth grants in the organization, and revokes their invitations. Resources that they " +
    'created stay. The last owner cannot leave. A user who leaves their only organization gets a new one if sign-up is open ' +
    '(`CADRE_SIGNUP=open`). Otherwise they cannot leave; an administrator can remove them.',
  credentials: ['session'],
  scope: null,
  body: Type.Object({ organization_id: Type.String({ maxLength: 64, description: 'The organization to leave.' }) }),
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

/** Response when a user joins: the organization as the new member sees it. */
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
