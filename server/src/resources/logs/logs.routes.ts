import type { FastifyInstance } from 'fastify'
import { getAgentLogs, listProjectLogs as listProjectLogsOperation } from '#contract/resources/logs.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { cutPage, isIdKey, keyOf } from '../../http/lists/cursor.ts'
import { offsetCursorPagination, timestamp } from '../../http/lists/pagination.ts'
import { emptyPeriod } from '../../http/lists/period.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { listLogs, type LogFilter, type LogKey, type LogRow } from './logs.queries.ts'
import { listProjectLogs } from './project-logs.queries.ts'

/** The year 2200 in microseconds since 1970. PostgreSQL and JavaScript represent all times until then exactly. */
const momentMax = 7_258_118_400_000_000

/** Routes of agents' logs (spec 4.4, decision D48) and of a project's logs. */
export function logRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, getAgentLogs, {
    load: async ({ sql, params, principal }) => {
      const project = await requireProject(sql, params.project_id!, principal)
      return requireAgent(sql, { id: params.agent_id!, project_id: project.id })
    },
    run: async ({ sql, loaded, query }) => {
      const { logs, total } = await listLogs(sql, { agent_id: loaded.id, ...filterOf(query) })
      return pageOf(query, logs, total)
    },
  })
  handle(app, http, listProjectLogsOperation, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, loaded, query }) => {
      const { logs, total } = await listProjectLogs(sql, { project_id: loaded.id, ...filterOf(query) })
      return pageOf(query, logs, total)
    },
  })
}

type Query = Pick<LogFilter, 'limit' | 'offset'> &
  Partial<Pick<LogFilter, 'level' | 'search' | 'task_id' | 'start_time' | 'end_time'>> & { cursor?: string }

const isLogKey = (key: unknown): key is LogKey =>
  Array.isArray(key) &&
  key.length === 2 &&
  Number.isSafeInteger(key[0]) &&
  Math.abs(key[0] as number) <= momentMax &&
  isIdKey('log')(key[1])

/** The filter of a query. It reads one entry more than the page has, to know whether another page follows. */
function filterOf({ level, search, task_id, limit, offset, cursor, ...period }: Query) {
  const start_time = timestamp(period.start_time)
  const end_time = timestamp(period.end_time)
  if (start_time !== undefined && end_time !== undefined && start_time >= end_time) throw emptyPeriod(period.end_time)
  const after = keyOf(cursor, isLogKey)
  return { level, search, task_id, start_time, end_time, after, limit: limit + 1, offset }
}

function pageOf<Row extends LogRow>({ limit, offset }: Query, read: Row[], total: number) {
  const { entries, next_cursor } = cutPage(read, limit, ({ moment, id }) => [moment, id])
  const logs = entries.map(({ moment: _, id: __, ...entry }) => entry)
  return { logs, pagination: offsetCursorPagination(total, limit, offset, next_cursor) }
}
