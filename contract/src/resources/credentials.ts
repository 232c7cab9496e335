import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Confirmation,
  Named,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'

const name = Type.String({
  minLength: 1,
  maxLength: bounds.credential_name,
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  description: 'Letters, digits and _, as in `${credentials.NAME}`. Unique in the project.',
})
const value = Type.Unsafe<string>({
  type: 'string',
  minLength: 1,
  maxLength: bounds.credential_value,
  'x-secret': true,
  description: 'Kept encrypted and never answered.',
})

const Credential = Named(
  'Credential',
  Type.Object({
    id: Type.String(),
    project_id: Type.String({ description: "`proj_` and the project's number." }),
    name: Type.String(),
    created_by: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)
const example = {
  id: 'cred_01jcm3x5v8f9a2b4c6d8e0g2h4',
  project_id: 'proj_42',
  name: 'WEATHER_KEY',
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}

const common = { error_format: 'agents', tag: 'Credentials', credentials: anyCredential, extension: true } as const
const ofProject = {
  ...common,
  path: '/api/v1/projects/{project_id}/credentials',
  params: { project_id: projectParameter },
} as const
const one = {
  ...common,
  path: '/api/v1/projects/{project_id}/credentials/{credential_id}',
  params: { project_id: projectParameter, credential_id: { description: 'The credential.', example: example.id } },
} as const

export const createCredential = defineOperation({
  ...ofProject,
  id: 'createCredential',
  command: 'credentials create',
  sdk: 'credentials.create',
  method: 'POST',
  summary: 'Keep a credential',
  description: 'A secret for tools of the project: `${credentials.NAME}` in their headers and URLs stands for it.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({ name, value }),
  body_example: { name: example.name, value: 'a-secret-of-yours' },
  responses: [{ status: 201, description: 'The credential without its value.', schema: Credential, example }],
  problems: ['project_not_found', 'resource_conflict'],
})

export const listCredentials = defineOperation({
  ...ofProject,
  id: 'listCredentials',
  command: 'credentials list',
  sdk: 'credentials.list',
  method: 'GET',
  summary: 'List credentials',
  description: 'Credentials of the project, newest first, without their values.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({}),
  responses: [
    {
      status: 200,
      description: 'A page of credentials.',
      schema: Named(
        'CredentialList',
        Type.Object({ credentials: Type.Array(Credential), pagination: OffsetPagination }),
      ),
      example: { credentials: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getCredential = defineOperation({
  ...one,
  id: 'getCredential',
  command: 'credentials get',
  sdk: 'credentials.get',
  sdk_note: 'Its name and kind, never its secret.',
  method: 'GET',
  summary: 'Read a credential',
  description: 'One credential of the project without its value.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The credential without its value.', schema: Credential, example }],
  problems: ['project_not_found', 'credential_not_found'],
})

export const updateCredential = defineOperation({
  ...one,
  id: 'updateCredential',
  command: 'credentials update',
  sdk: 'credentials.update',
  method: 'PUT',
  summary: 'Replace a credential',
  description: 'Gives it another value, another name, or both. Calls that begin afterwards use it.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({ name: Type.Optional(name), value: Type.Optional(value) }),
  body_example: { value: 'another-secret-of-yours' },
  responses: [{ status: 200, description: 'The credential without its value.', schema: Credential, example }],
  problems: ['project_not_found', 'credential_not_found', 'resource_conflict'],
})

export const deleteCredential = defineOperation({
  ...one,
  id: 'deleteCredential',
  command: 'credentials delete',
  sdk: 'credentials.delete',
  method: 'DELETE',
  summary: 'Delete a credential',
  description: 'Calls of tools that name it fail from now on.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The credential is gone.',
      schema: Confirmation({ credential_id: Type.String() }),
      example: { message: 'Credential deleted', credential_id: example.id },
    },
  ],
  problems: ['project_not_found', 'credential_not_found'],
})

export const credentialOperations: Operation[] = [
  createCredential,
  listCredentials,
  getCredential,
  updateCredential,
  deleteCredential,
] as Operation[]
