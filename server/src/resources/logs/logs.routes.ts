import type { FastifyInstance } from 'fastify'
import { getAgentLogs, listProjectLogs as listProjectLogsOperation } from '#contract/resources/logs.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp, offsetPagination } from '../../http/pagination.ts'
import { emptyPeriod } from '../../http/period.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { listLogs, type LogFilter } from './logs.queries.ts'
import { listProjectLogs } from './project-logs.queries.ts'

/** An agent's log (spec 4.4, decision D48), and those of all agents of a project. */
export function logRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, getAgentLogs, {
    load: async ({ sql, params, principal }) => {
      const project = await requireProject(sql, params.project_id!, principal)
      return requireAgent(sql, { id: params.agent_id!, project_id: project.id })
    },
    run: async ({ sql, loaded, query }) => {
      const filter = filterOf(query)
      const { logs, total } = await listLogs(sql, { agent_id: loaded.id, ...filter })
      return { logs, pagination: offsetPagination(total, filter.limit, filter.offset, logs.length) }
    },
  })
  handle(app, http, listProjectLogsOperation, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, loaded, query }) => {
      const filter = filterOf(query)
      const { logs, total } = await listProjectLogs(sql, { project_id: loaded.id, ...filter })
      return { logs, pagination: offsetPagination(total, filter.limit, filter.offset, logs.length) }
    },
  })
}

type Query = Pick<LogFilter, 'limit' | 'offset'> &
  Partial<Pick<LogFilter, 'level' | 'search' | 'task_id' | 'start_time' | 'end_time'>>

function filterOf({ level, search, task_id, limit, offset, ...period }: Query) {
  const start_time = timestamp(period.start_time)
  const end_time = timestamp(period.end_time)
  if (start_time !== undefined && end_time !== undefined && start_time >= end_time) throw emptyPeriod(period.end_time)
  return { level, search, task_id, start_time, end_time, limit, offset }
}
