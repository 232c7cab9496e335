import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Confirmation,
  Defaulted,
  Named,
  PagePagination,
  pageQuery,
  projectParameter,
  revisionHeader,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'

/** Naming rules of a project (spec 2.1, decision D31). */
export const projectNamePattern = '^[A-Za-z0-9][A-Za-z0-9-]{1,48}[A-Za-z0-9]$'

const common = { error_format: 'control', tag: 'Projects', credentials: anyCredential, bucket: 'general' } as const
const example = {
  id: 42,
  name: 'customer-support',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}

/** A project (spec 2.1). */
export const Project = Named(
  'Project',
  Type.Object({ id: Type.Integer({ minimum: 1 }), name: Type.String(), created_at: Timestamp, updated_at: Timestamp }),
)

const projectName = Type.String({
  minLength: bounds.project_name_min,
  maxLength: bounds.project_name_max,
  pattern: projectNamePattern,
  description: '3 to 50 letters, digits and hyphens; starts and ends with a letter or digit.',
})

export const createProject = defineOperation({
  ...common,
  id: 'createProject',
  audit: 'project.created',
  command: 'projects create',
  sdk: 'projects.create',
  method: 'POST',
  path: '/api/v1/projects',
  summary: 'Create a project',
  description: 'Names are unique in the organization, case-insensitively.',
  scope: 'projects:write',
  body: Type.Object({ name: projectName }),
  body_example: { name: example.name },
  responses: [{ status: 201, description: 'The project.', schema: Project, example, headers: revisionHeader }],
  problems: ['invalid_project_name', 'project_name_taken'],
})

export const listProjects = defineOperation({
  ...common,
  id: 'listProjects',
  command: 'projects list',
  sdk: 'projects.list',
  method: 'GET',
  path: '/api/v1/projects',
  summary: 'List projects',
  description: 'Projects of the organization. The filters `…_after` are inclusive, `…_before` exclusive.',
  scope: 'projects:read',
  query: pageQuery({
    search: Type.Optional(
      Type.String({ maxLength: bounds.search, description: 'Part of the name. Case-insensitive.' }),
    ),
    sort: Defaulted(
      Choice(['name', 'created_at', 'updated_at'], { default: 'created_at', description: 'Member to sort by.' }),
    ),
    order: Defaulted(Choice(['asc', 'desc'], { default: 'desc', description: 'Sort direction.' })),
    status: Type.Optional(
      Type.String({ maxLength: bounds.search, description: 'Accepted without effect: projects have no status.' }),
    ),
    created_after: Type.Optional(TimestampInput),
    created_before: Type.Optional(TimestampInput),
    updated_after: Type.Optional(TimestampInput),
    updated_before: Type.Optional(TimestampInput),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of projects.',
      schema: Named(
        'ProjectList',
        Type.Object({
          projects: Type.Array(Type.Object({ id: Type.Integer(), name: Type.String() })),
          pagination: PagePagination,
        }),
      ),
      example: {
        projects: [{ id: 42, name: example.name }],
        pagination: { page: 1, limit: 20, total: 1, pages: 1, has_next: false, has_prev: false },
      },
    },
  ],
  problems: ['invalid_query'],
})

const one = {
  ...common,
  path: '/api/v1/projects/{project_id}',
  params: { project_id: projectParameter },
  extension: true,
} as const

export const getProject = defineOperation({
  ...one,
  id: 'getProject',
  command: 'projects get',
  sdk: 'projects.get',
  method: 'GET',
  summary: 'Read a project',
  description: 'One project of the organization.',
  scope: 'projects:read',
  revisioned: true,
  responses: [{ status: 200, description: 'The project.', schema: Project, example }],
  problems: ['project_not_found'],
})

export const updateProject = defineOperation({
  ...one,
  id: 'updateProject',
  audit: 'project.updated',
  command: 'projects update',
  sdk: 'projects.update',
  method: 'PUT',
  summary: 'Rename a project',
  description: 'Changes the name. The id does not change.',
  scope: 'projects:write',
  body: Type.Object({ name: projectName }),
  body_example: { name: 'support-eu' },
  revisioned: true,
  responses: [
    { status: 200, description: 'The project.', schema: Project, example: { ...example, name: 'support-eu' } },
  ],
  problems: ['project_not_found', 'invalid_project_name', 'project_name_taken'],
})

export const deleteProject = defineOperation({
  ...one,
  id: 'deleteProject',
  audit: 'project.deleted',
  command: 'projects delete',
  sdk: 'projects.delete',
  method: 'DELETE',
  summary: 'Delete a project',
  description: 'Deletes a project that has no agents.',
  scope: 'projects:write',
  administrators: true,
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The project is deleted. Its id is never used again.',
      schema: Confirmation({ project_id: Type.Integer() }),
      example: { message: 'Project deleted', project_id: 42 },
    },
  ],
  problems: ['project_not_found', 'project_not_empty'],
})

export const projectOperations: Operation[] = [
  createProject,
  listProjects,
  getProject,
  updateProject,
  deleteProject,
] as Operation[]
