import type { FastifyInstance } from 'fastify'
import { invalidQuery } from '#contract/core/problems.ts'
import {
  getUsage,
  getUsageSeries,
  readGroups,
  usageIntervals,
  usagePeriodDefault_seconds,
  usagePointsMax,
} from '#contract/resources/usage.ts'
import type { Context } from '../../context.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp, offsetPagination } from '../../http/lists/pagination.ts'
import { emptyPeriod } from '../../http/lists/period.ts'
import { nameCredentials } from '../api-keys/credential-names.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { listUsagePoints, sumUsage, type UsagePoint } from './usage.queries.ts'
import { countFiles } from '../../engine/files/file-rows.ts'

/** Usage of a project and its cost. */
export function usageRoutes(app: FastifyInstance, http: HttpContext, { config }: Pick<Context, 'config'>): void {
  handle(app, http, getUsage, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, principal, loaded, query }) => {
      const { limit, offset } = query
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
        files: { ...(await countFiles(sql, loaded.id)), quota_bytes: config.files_max_bytes_project },
        period: { start_time, end_time },
        pagination: offsetPagination(count, limit, offset, usage.length),
      }
    },
  })

  handle(app, http, getUsageSeries, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, principal, loaded, query }) => {
      const { interval, group_by: group } = query
      const bucket_seconds = usageIntervals[interval]
      const end_time = timestamp(query.end_time) ?? new Date().toISOString()
      const asked = timestamp(query.start_time) ?? before(end_time, usagePeriodDefault_seconds)
      if (asked >= end_time) throw emptyPeriod(end_time)
      const first = Math.floor(Date.parse(asked) / 1000 / bucket_seconds)
      const count = Math.ceil(Date.parse(end_time) / 1000 / bucket_seconds) - first
      if (count > usagePointsMax) {
        const message = `would give ${count} buckets; the most is ${usagePointsMax}`
        throw invalidQuery({ field: 'interval', message, code: 'out_of_range', max: usagePointsMax })
      }
      const start_time = new Date(Math.max(first * bucket_seconds * 1000, firstTimestamp_ms)).toISOString()
      const found = await listUsagePoints(sql, { project_id: loaded.id, group, start_time, end_time, bucket_seconds })
      const groups = Map.groupBy(found, (point) => point.group)
      const keys = group === 'api_key' ? [...groups.keys()].flatMap((key) => key || []) : []
      const names = await nameCredentials(sql, principal, keys)
      const series = [...groups].map(([key, points]) => ({
        group: key,
        name: names.get(key ?? '') ?? points[0]!.name,
        cost_usd: points.reduce((sum, { cost_usd }) => sum + cost_usd, 0),
        tokens: points.reduce((sum, { tokens }) => sum + tokens, 0),
        points: everyPoint(points, first, count, bucket_seconds),
      }))
      series.sort(
        (a, b) => Number(a.group === null) - Number(b.group === null) || b.cost_usd - a.cost_usd || b.tokens - a.tokens,
      )
      return { series, period: { start_time, end_time, interval } }
    },
  })
}

/** All buckets of a period; those without usage have zeros. */
function everyPoint(points: readonly UsagePoint[], first: number, count: number, bucket_seconds: number) {
  const known = new Map(points.map((point) => [point.at, point]))
  return Array.from({ length: count }, (_, n) => {
    const at = (first + n) * bucket_seconds
    const { cost_usd = 0, tokens = 0 } = known.get(at) ?? {}
    return { timestamp: new Date(at * 1000).toISOString(), cost_usd, tokens }
  })
}

/** The earliest time that the API accepts, and so the earliest it returns. */
const firstTimestamp_ms = Date.parse('0001-01-01T00:00:00.000Z')

function before(timestamp: string, seconds: number): string {
  return new Date(Math.max(firstTimestamp_ms, Date.parse(timestamp) - seconds * 1000)).toISOString()
}
