import type { FastifyInstance } from 'fastify'
import { getUsage, readGroups, usagePeriodDefault_seconds } from '#contract/resources/usage.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp, offsetPagination } from '../../http/pagination.ts'
import { emptyPeriod } from '../../http/period.ts'
import { nameCredentials } from '../api-keys/credential-names.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { sumUsage } from './usage.queries.ts'

/** What a project used, and what it cost. */
export function usageRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, getUsage, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, principal, loaded, query }) => {
      const { limit = 20, offset = 0 } = query
      const end_time = timestamp(query.end_time) ?? new Date().toISOString()
      const start_time = timestamp(query.start_time) ?? before(end_time, usagePeriodDefault_seconds)
      if (start_time >= end_time) throw emptyPeriod(end_time)
      const groups = readGroups(query.group_by)
      const filter = { project_id: loaded.id, start_time, end_time, groups, limit, offset }
      const { usage, count, total } = await sumUsage(sql, filter)
      const names = await nameCredentials(
        sql,
        principal,
        usage.flatMap(({ api_key_id }) => api_key_id ?? []),
      )
      return {
        usage: usage.map((row) => ({ ...row, api_key_name: names.get(row.api_key_id ?? '') ?? null })),
        total,
        period: { start_time, end_time },
        pagination: offsetPagination(count, limit, offset, usage.length),
      }
    },
  })
}

/** No moment before this one is accepted, so none is made up either. */
const firstTimestamp_ms = Date.parse('0001-01-01T00:00:00.000Z')

function before(timestamp: string, seconds: number): string {
  return new Date(Math.max(firstTimestamp_ms, Date.parse(timestamp) - seconds * 1000)).toISOString()
}
