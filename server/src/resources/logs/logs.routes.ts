import type { FastifyInstance } from 'fastify'
import { getAgentLogs } from '#contract/logs.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { moment, offsetPagination } from '../../http/pagination.ts'
import { emptyPeriod } from '../../http/period.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { listLogs } from './logs.queries.ts'

/** An agent's log (spec 4.4, decision D48). */
export function logRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, getAgentLogs, {
    load: async ({ sql, params, principal }) => {
      const project = await requireProject(sql, params.project_id!, principal)
      return requireAgent(sql, { id: params.agent_id!, project_id: project.id })
    },
    run: async ({ sql, loaded, query }) => {
      const { level, search, task_id, limit = 100, offset = 0 } = query
      const start_time = moment(query.start_time)
      const end_time = moment(query.end_time)
      if (start_time !== undefined && end_time !== undefined && start_time >= end_time)
        throw emptyPeriod(query.end_time)
      const filter = { agent_id: loaded.id, level, search, task_id, start_time, end_time, limit, offset }
      const { logs, total } = await listLogs(sql, filter)
      return { logs, pagination: offsetPagination(total, limit, offset, logs.length) }
    },
  })
}
