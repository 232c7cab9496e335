import type { FastifyInstance } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import { listProjectStatistics } from '#contract/resources/project-statistics.ts'
import {
  createProject,
  deleteProject,
  getProject,
  listProjects as listProjectsOperation,
  updateProject,
} from '#contract/resources/projects.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { emit } from '../../events/outbox.ts'
import { etag, requireMatch, timeRevision } from '../../http/etag.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp, pagePagination } from '../../http/lists/pagination.ts'
import { listProjects } from './project-list.queries.ts'
import { listProjectNumbers } from './project-statistics.queries.ts'
import {
  deleteEmptyProject,
  insertProject,
  lockProject,
  projectNotFound,
  projectNumber,
  renameProject,
  requireProject,
} from './projects.queries.ts'

/** Routes of projects (spec 4.5, decisions D30–D32 and D100). */
export function projectRoutes(app: FastifyInstance, http: HttpContext, _context: Context): void {
  handle(app, http, createProject, {
    run: ({ sql, principal, body, actor, header }) =>
      sql.begin(async (tx) => {
        const project = await insertProject(tx, principal.org_id, body.name)
        header('etag', etag(timeRevision(project)))
        await emit(
          tx,
          'project.created',
          { org_id: principal.org_id, project_id: project.id },
          { project, user_id: principal.user_id },
        )
        await recordAudit(tx, actor, { action: 'project.created', target: projectId(project.id), after: project })
        return project
      }),
  })

  handle(app, http, listProjectsOperation, {
    run: async ({ sql, principal, query }) => {
      const { page, limit, sort, order, search } = query
      const { projects, total } = await listProjects(sql, {
        org_id: principal.org_id,
        search,
        sort,
        order,
        limit,
        offset: (page - 1) * limit,
        created_after: timestamp(query.created_after),
        created_before: timestamp(query.created_before),
        updated_after: timestamp(query.updated_after),
        updated_before: timestamp(query.updated_before),
      })
      return { projects, pagination: pagePagination(total, page, limit) }
    },
  })

  handle(app, http, listProjectStatistics, {
    run: async ({ sql, principal, query }) => {
      const numbers = query.project_ids?.split(',').flatMap((text) => projectNumber(text) ?? [])
      return { statistics: await listProjectNumbers(sql, principal.org_id, numbers) }
    },
  })

  handle(app, http, getProject, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ loaded, header }) => {
      header('etag', etag(timeRevision(loaded)))
      return loaded
    },
  })

  handle(app, http, updateProject, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: ({ sql, params, principal, body, loaded, actor, header, request }) =>
      sql.begin(async (tx) => {
        const before = await lockProject(tx, loaded.id)
        if (before) requireMatch(request.headers['if-match'], timeRevision(before))
        const project = before && (await renameProject(tx, loaded.id, body.name))
        if (!project) throw projectNotFound(params.project_id!)
        header('etag', etag(timeRevision(project)))
        if (project.name === before.name) return project
        await emit(
          tx,
          'project.updated',
          { org_id: principal.org_id, project_id: project.id },
          { project, changed: ['name'], user_id: principal.user_id },
        )
        await recordAudit(tx, actor, {
          action: 'project.updated',
          target: projectId(project.id),
          before,
          after: project,
        })
        return project
      }),
  })

  handle(app, http, deleteProject, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: ({ sql, params, principal, loaded, loaded: { id, name }, actor, request }) =>
      sql.begin(async (tx) => {
        const before = await lockProject(tx, id)
        if (!before) throw projectNotFound(params.project_id!)
        requireMatch(request.headers['if-match'], timeRevision(before))
        if (!(await deleteEmptyProject(tx, id)))
          throw new Problem('project_not_empty', { field: 'project_id', issue: 'the project still has agents' })
        await emit(
          tx,
          'project.deleted',
          { org_id: principal.org_id, project_id: id },
          { project: { id, name }, user_id: principal.user_id },
        )
        await recordAudit(tx, actor, { action: 'project.deleted', target: projectId(id), before: loaded })
        return { message: 'Project deleted', project_id: id }
      }),
  })
}
