import type { FastifyInstance } from 'fastify'
import { listAgentStatistics, statisticsPeriodMax_seconds } from '#contract/resources/agent-statistics.ts'
import {
  getAgentMetrics,
  getProjectMetrics,
  metricIntervals,
  metricPeriodDefault_seconds,
  metricPointsMax,
} from '#contract/resources/metrics.ts'
import { invalidQuery } from '#contract/core/problems.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp } from '../../http/lists/pagination.ts'
import { emptyPeriod } from '../../http/lists/period.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { listAgentNumbers, type AgentNumbers } from './agent-statistics.queries.ts'
import { findTaskNumbers, findUsageNumbers, listSeries, type Period } from './metrics.queries.ts'
import {
  listEndedNumbers,
  listFailureGroups,
  listUsedNumbers,
  type EndedNumbers,
  type UsedNumbers,
} from './project-metrics.queries.ts'

/** Routes of metrics and statistics (spec 2.8 and 4.4, decision D49). */
export function metricRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, getAgentMetrics, {
    load: async ({ sql, params, principal }) => {
      const project = await requireProject(sql, params.project_id!, principal)
      return requireAgent(sql, { id: params.agent_id!, project_id: project.id })
    },
    run: async ({ sql, loaded: agent, query }) => {
      const { interval } = query
      const period = resolvePeriod(timestamp(query.start_time), timestamp(query.end_time), metricIntervals[interval])
      const { start_time, end_time } = period
      const [tasks, usage, time_series] = await Promise.all([
        findTaskNumbers(sql, agent.id, period),
        findUsageNumbers(sql, agent.id, period),
        listSeries(sql, agent.id, period),
      ])
      const { avg_response_time, p95_response_time, p99_response_time, ...counts } = tasks
      const { tokens, requests, ...resource_usage } = usage
      const minutes = (Date.parse(end_time) - Date.parse(start_time)) / 60_000
      return {
        metrics: {
          tasks: counts,
          performance: {
            avg_response_time,
            p95_response_time,
            p99_response_time,
            tokens_per_minute: tokens / minutes,
            requests_per_minute: requests / minutes,
          },
          resource_usage,
          time_series,
        },
        period: { start_time, end_time, interval },
      }
    },
  })

  handle(app, http, getProjectMetrics, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, loaded: project, query }) => {
      const { interval, agent_id } = query
      if (agent_id !== undefined) await requireAgent(sql, { id: agent_id, project_id: project.id })
      const bucket_seconds = metricIntervals[interval]
      const period = resolvePeriod(timestamp(query.start_time), timestamp(query.end_time), bucket_seconds)
      const first = Math.floor(Date.parse(period.start_time) / 1000 / bucket_seconds)
      const start_time = new Date(Math.max(first * bucket_seconds * 1000, firstTimestamp_ms)).toISOString()
      const measured = { ...period, start_time, project_id: project.id, agent_id }
      const [ended, used, failures] = await Promise.all([
        listEndedNumbers(sql, measured),
        listUsedNumbers(sql, measured),
        listFailureGroups(sql, measured),
      ])
      const endedAt = new Map(ended.map((row) => [row.at, row]))
      const usedAt = new Map(used.map((row) => [row.at, row]))
      const { avg_response_time, p50_response_time, p95_response_time, p99_response_time, ...counts } = numbersAt(
        endedAt,
        null,
      )
      const { completed, failed } = counts
      const points = Math.ceil(Date.parse(period.end_time) / 1000 / bucket_seconds) - first
      return {
        metrics: {
          tasks: { ...counts, success_rate: completed + failed === 0 ? 0 : completed / (completed + failed) },
          performance: { avg_response_time, p50_response_time, p95_response_time, p99_response_time },
          usage: usageAt(usedAt, null),
          time_series: Array.from({ length: points }, (_, n) => {
            const at = (first + n) * bucket_seconds
            const { avg_response_time: _average, p99_response_time: _p99, ...numbers } = numbersAt(endedAt, at)
            const { unpriced_calls: _unpriced, ...usage } = usageAt(usedAt, at)
            return { timestamp: new Date(at * 1000).toISOString(), ...numbers, ...usage }
          }),
          failures,
        },
        period: { start_time, end_time: period.end_time, interval },
      }
    },
  })

  handle(app, http, listAgentStatistics, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, loaded: project, query }) => {
      const { start_time, end_time } = resolvePeriod(
        timestamp(query.start_time),
        timestamp(query.end_time),
        hour_seconds,
      )
      if (Date.parse(end_time) - Date.parse(start_time) > statisticsPeriodMax_seconds * 1000) {
        const message = `must be within ${statisticsPeriodMax_seconds} seconds of end_time`
        throw invalidQuery({ field: 'start_time', message, code: 'out_of_range' })
      }
      const period = { start_time, end_time }
      const agents = await listAgentNumbers(sql, project.id, query.agent_ids?.split(','), period)
      return { statistics: agents.map((agent) => statisticsView(agent, period)), period }
    },
  })
}

type Moment = number | null

/** Figures of a bucket, or of the whole period (`null`); zeros if no task ended in it. */
function numbersAt(known: ReadonlyMap<Moment, EndedNumbers>, moment: Moment): Omit<EndedNumbers, 'at'> {
  const none = {
    completed: 0,
    failed: 0,
    canceled: 0,
    avg_response_time: 0,
    p50_response_time: 0,
    p95_response_time: 0,
    p99_response_time: 0,
  }
  const { at: _, ...numbers } = { at: moment, ...none, ...known.get(moment) }
  return numbers
}

/** Usage of a bucket, or of the whole period (`null`); zeros if there is none. */
function usageAt(known: ReadonlyMap<Moment, UsedNumbers>, moment: Moment): Omit<UsedNumbers, 'at'> {
  const none = { calls: 0, tokens: 0, cost_usd: 0, unpriced_calls: 0 }
  const { at: _, ...usage } = { at: moment, ...none, ...known.get(moment) }
  return usage
}

const hour_seconds = metricIntervals['1h']

/** Statistics with all hours of the period, including empty ones. */
function statisticsView({ hours, ...numbers }: AgentNumbers, period: { start_time: string; end_time: string }) {
  const found = new Map(hours.map(([at, completed, failed]) => [at, { completed, failed }]))
  const first = Math.floor(Date.parse(period.start_time) / 1000 / hour_seconds)
  const end = Math.ceil(Date.parse(period.end_time) / 1000 / hour_seconds)
  const time_series = Array.from({ length: end - first }, (_, n) => {
    const at = (first + n) * hour_seconds
    return { timestamp: new Date(at * 1000).toISOString(), ...(found.get(at) ?? { completed: 0, failed: 0 }) }
  })
  return { ...numbers, time_series }
}

/** Earliest accepted timestamp, also for computed ones. */
const firstTimestamp_ms = Date.parse('0001-01-01T00:00:00.000Z')

/** The period of a request. Default: the last 24 hours. */
function resolvePeriod(start: string | undefined, end: string | undefined, bucket_seconds: number): Period {
  const end_time = end ?? new Date().toISOString()
  const dayBefore_ms = Date.parse(end_time) - metricPeriodDefault_seconds * 1000
  const start_time = start ?? new Date(Math.max(dayBefore_ms, firstTimestamp_ms)).toISOString()
  if (start_time >= end_time) throw emptyPeriod(end_time)
  const bucket_ms = bucket_seconds * 1000
  const points = Math.ceil(Date.parse(end_time) / bucket_ms) - Math.floor(Date.parse(start_time) / bucket_ms)
  if (points > metricPointsMax) {
    const message = `would give ${points} points, but at most ${metricPointsMax} are allowed`
    throw invalidQuery({ field: 'interval', message, code: 'out_of_range', max: metricPointsMax })
  }
  return { start_time, end_time, bucket_seconds }
}
