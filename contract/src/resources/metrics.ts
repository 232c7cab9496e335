import Type from 'typebox'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  agentParameter,
  Choice,
  Defaulted,
  Named,
  projectParameter,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'

/** Lengths of the buckets of a time series, in seconds. */
export const metricIntervals = { '1m': 60, '5m': 300, '15m': 900, '1h': 3600, '1d': 86_400 } as const

/** Maximum number of points of a time series; requests for more are refused (decision D49). */
export const metricPointsMax = 1500
/** Default period in seconds, for requests without `start_time`. */
export const metricPeriodDefault_seconds = 86_400

const intervals = ['1m', '5m', '15m', '1h', '1d'] as const
const fraction = (description: string) => Type.Number({ minimum: 0, maximum: 1, description })
const amount = (description: string) => Type.Number({ minimum: 0, description })
const count = (description: string) => Type.Integer({ minimum: 0, description })

/** Metrics of an agent over a period (spec 2.8, decision D49). No member is null. */
export const AgentMetrics = Named(
  'AgentMetrics',
  Type.Object({
    tasks: Type.Object({
      total: count('Tasks that existed in the period.'),
      completed: count('Tasks that completed in the period.'),
      failed: count('Tasks that failed or expired in the period.'),
      in_progress: count('Tasks that had not ended at the end of the period.'),
      success_rate: fraction('completed / (completed + failed); 0 if there are none.'),
    }),
    performance: Type.Object({
      avg_response_time: amount('Average seconds from start to end of a task.'),
      p95_response_time: amount('95th percentile, in seconds.'),
      p99_response_time: amount('99th percentile, in seconds.'),
      tokens_per_minute: amount('Input and output tokens per minute.'),
      requests_per_minute: amount('Model calls per minute.'),
    }),
    resource_usage: Type.Object({
      cpu_usage: fraction('Share of the processors in use while the agent had tasks.'),
      memory_usage: fraction('Share of the memory in use while the agent had tasks.'),
      disk_usage: fraction("Share of the storage that the agent's data uses."),
      network_in: amount('Bytes from model providers.'),
      network_out: amount('Bytes to model providers.'),
    }),
    time_series: Type.Array(
      Type.Object({
        timestamp: Timestamp,
        tasks_completed: count('Tasks that completed in the bucket.'),
        tasks_failed: count('Tasks that failed or expired in the bucket.'),
        avg_response_time: amount('Average seconds from start to end of a task.'),
        cpu_usage: fraction('Share of the processors in use while the agent had tasks.'),
        memory_usage: fraction('Share of the memory in use while the agent had tasks.'),
        tokens: count('Input and output tokens of the bucket.'),
        requests: count('Model calls in the bucket.'),
        network_in: amount('Bytes from model providers in the bucket.'),
        network_out: amount('Bytes to model providers in the bucket.'),
      }),
    ),
  }),
)

export const getAgentMetrics = defineOperation({
  id: 'getAgentMetrics',
  command: 'agents metrics',
  sdk: 'agents.metrics',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/agents/{agent_id}/metrics',
  error_format: 'agents',
  tag: 'Agents',
  summary: "Read an agent's metrics",
  description: `The default period is the last 24 hours. Buckets are aligned to UTC and include empty ones; a request may have at most ${metricPointsMax} of them.`,
  credentials: anyCredential,
  scope: 'agents:read',
  bucket: 'agents.metrics',
  params: { project_id: projectParameter, agent_id: agentParameter },
  query: Type.Object({
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
    interval: Defaulted(Choice(intervals, { default: '1h', description: 'Length of a bucket.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'The metrics and their period.',
      schema: Named(
        'AgentMetricsResult',
        Type.Object({
          metrics: AgentMetrics,
          period: Type.Object({ start_time: Timestamp, end_time: Timestamp, interval: Choice(intervals) }),
        }),
      ),
      example: {
        metrics: {
          tasks: { total: 12, completed: 11, failed: 1, in_progress: 0, success_rate: 0.9166666666666666 },
          performance: {
            avg_response_time: 1.84,
            p95_response_time: 3.1,
            p99_response_time: 3.4,
            tokens_per_minute: 118.2,
            requests_per_minute: 0.2,
          },
          resource_usage: {
            cpu_usage: 0.04,
            memory_usage: 0.01,
            disk_usage: 0.0001,
            network_in: 48_213,
            network_out: 9120,
          },
          time_series: [
            {
              timestamp: '2026-11-20T09:00:00.000Z',
              tasks_completed: 11,
              tasks_failed: 1,
              avg_response_time: 1.84,
              cpu_usage: 0.04,
              memory_usage: 0.01,
              tokens: 7092,
              requests: 12,
              network_in: 48_213,
              network_out: 9120,
            },
          ],
        },
        period: { start_time: '2026-11-20T09:00:00.000Z', end_time: '2026-11-20T10:00:00.000Z', interval: '1h' },
      },
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

/** Maximum number of failure groups in a response. */
export const failureGroupsMax = 20
/** Maximum number of failed tasks, and of expired tasks, that are grouped: the newest of a project. */
export const failuresGrouped = 10_000

const seconds = (description: string) => Type.Number({ minimum: 0, description })
const dollars = Type.Number({ minimum: 0, description: 'US dollars, of the calls whose price is known.' })

export const getProjectMetrics = defineOperation({
  id: 'getProjectMetrics',
  command: 'projects metrics',
  sdk: 'projects.metrics',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/metrics',
  error_format: 'agents',
  tag: 'Projects',
  summary: "Read a project's metrics",
  description:
    `Results, durations and usage of the tasks of a project or of one of its agents, as totals and as a time series. ` +
    `The default period is the last 24 hours. Buckets are aligned to UTC and include empty ones; whole buckets count, from the one that contains start_time. A request may have at most ${metricPointsMax} buckets. ` +
    `Usage has a resolution of one hour: with shorter buckets, the first bucket of the hour has it. Percentiles are exact to 1 %.`,
  credentials: anyCredential,
  extension: true,
  scope: 'agents:read',
  bucket: 'agents.metrics',
  params: { project_id: projectParameter },
  query: Type.Object({
    agent_id: Type.Optional(
      Type.String({ pattern: '^[a-z0-9_]{1,64}$', description: 'Only the tasks of this agent.' }),
    ),
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
    interval: Defaulted(Choice(intervals, { default: '1h', description: 'Length of a bucket.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'The metrics and their period.',
      schema: Named(
        'ProjectMetrics',
        Type.Object({
          metrics: Type.Object({
            tasks: Type.Object({
              completed: count('Tasks that completed in the period.'),
              failed: count('Tasks that failed or expired in the period.'),
              canceled: count('Tasks that were canceled in the period.'),
              success_rate: Type.Number({
                minimum: 0,
                maximum: 1,
                description: 'completed / (completed + failed); 0 if there are none.',
              }),
            }),
            performance: Type.Object({
              avg_response_time: seconds('Average seconds from start to end of a task.'),
              p50_response_time: seconds('Median, in seconds.'),
              p95_response_time: seconds('95th percentile, in seconds.'),
              p99_response_time: seconds('99th percentile, in seconds.'),
            }),
            usage: Type.Object({
              calls: count('Calls of models and tools.'),
              tokens: count('Input and output tokens.'),
              cost_usd: dollars,
              unpriced_calls: count('Model calls whose price is unknown.'),
            }),
            time_series: Type.Array(
              Type.Object({
                timestamp: Timestamp,
                completed: count('Tasks that completed in the bucket.'),
                failed: count('Tasks that failed or expired in the bucket.'),
                canceled: count('Tasks that were canceled in the bucket.'),
                p50_response_time: seconds('Median, in seconds; 0 if no task ended.'),
                p95_response_time: seconds('95th percentile, in seconds; 0 if no task ended.'),
                calls: count('Calls of models and tools in the bucket.'),
                tokens: count('Input and output tokens in the bucket.'),
                cost_usd: dollars,
              }),
            ),
            failures: Type.Array(
              Type.Object({
                agent_id: Type.String(),
                agent_name: Type.String(),
                code: Type.String({ description: 'The code of the error; `expired` for tasks that expired.' }),
                message: Type.String({ description: 'The error message of the newest of these tasks.' }),
                count: count('Tasks of the agent that ended with this code in the period.'),
                last_task_id: Type.String({ description: 'The newest of these tasks.' }),
                last_at: Timestamp,
              }),
              {
                description: `Up to ${failureGroupsMax} groups, most frequent first, of the newest ${failuresGrouped} failed and ${failuresGrouped} expired tasks.`,
              },
            ),
          }),
          period: Type.Object({ start_time: Timestamp, end_time: Timestamp, interval: Choice(intervals) }),
        }),
      ),
      example: {
        metrics: {
          tasks: { completed: 11, failed: 1, canceled: 0, success_rate: 0.9166666666666666 },
          performance: {
            avg_response_time: 1.84,
            p50_response_time: 1.2,
            p95_response_time: 3.1,
            p99_response_time: 3.4,
          },
          usage: { calls: 24, tokens: 7092, cost_usd: 0.0311, unpriced_calls: 0 },
          time_series: [
            {
              timestamp: '2026-11-20T09:00:00.000Z',
              completed: 11,
              failed: 1,
              canceled: 0,
              p50_response_time: 1.2,
              p95_response_time: 3.1,
              calls: 24,
              tokens: 7092,
              cost_usd: 0.0311,
            },
          ],
          failures: [
            {
              agent_id: agentParameter.example,
              agent_name: 'support-desk',
              code: 'model_rate_limited',
              message: 'The provider openai refused the call: too many requests.',
              count: 1,
              last_task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
              last_at: '2026-11-20T09:31:00.000Z',
            },
          ],
        },
        period: { start_time: '2026-11-20T09:00:00.000Z', end_time: '2026-11-20T10:00:00.000Z', interval: '1h' },
      },
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

export const metricOperations: Operation[] = [getAgentMetrics, getProjectMetrics] as Operation[]
