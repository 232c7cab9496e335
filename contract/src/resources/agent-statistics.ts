import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { agentParameter, Named, projectParameter, Timestamp, TimestampInput } from '../core/schemas.ts'

/** Longest period of statistics of several agents. */
export const statisticsPeriodMax_seconds = 7 * 86_400

const count = (description: string) => Type.Integer({ minimum: 0, description })
const seconds = (description: string) => Type.Number({ minimum: 0, description })
const otherAgent = 'agent_01jcm3x5v8f9a2b4c6d8e0g2h5'

export const listAgentStatistics = defineOperation({
  error_format: 'agents',
  tag: 'Agents',
  credentials: anyCredential,
  extension: true,
  id: 'listAgentStatistics',
  command: 'agents statistics',
  sdk: 'agents.statistics',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/agents/statistics',
  params: { project_id: projectParameter },
  summary: 'Read the statistics of several agents',
  description:
    'Statistics of agents of a project in a period, with the figures of `getAgentMetrics` and an hourly series (UTC) that includes empty hours. The default period is the last 24 hours; the maximum is 7 days. Agents that do not exist in the project are omitted.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: Type.Object({
    agent_ids: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: `^[a-z0-9_]{1,64}(,[a-z0-9_]{1,64}){0,${bounds.page_limit - 1}}$`,
        description: `Up to ${bounds.page_limit} agent ids, separated by commas. Default: the ${bounds.page_limit} newest agents.`,
      }),
    ),
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
  }),
  responses: [
    {
      status: 200,
      description: 'The statistics of each agent, and their period.',
      schema: Named(
        'AgentStatistics',
        Type.Object({
          statistics: Type.Array(
            Type.Object({
              agent_id: Type.String(),
              completed: count('Tasks that completed in the period.'),
              failed: count('Tasks that failed or expired in the period.'),
              canceled: count('Tasks that were canceled in the period.'),
              success_rate: Type.Number({
                minimum: 0,
                maximum: 1,
                description: 'completed / (completed + failed); 0 if there are none.',
              }),
              avg_response_time: seconds('Average seconds from start to end of a task.'),
              p95_response_time: seconds('95th percentile, in seconds.'),
              time_series: Type.Array(
                Type.Object({
                  timestamp: Timestamp,
                  completed: count('Tasks that completed in the hour.'),
                  failed: count('Tasks that failed or expired in the hour.'),
                }),
              ),
            }),
          ),
          period: Type.Object({ start_time: Timestamp, end_time: Timestamp }),
        }),
      ),
      example: {
        statistics: [
          {
            agent_id: agentParameter.example,
            completed: 11,
            failed: 1,
            canceled: 0,
            success_rate: 0.9166666666666666,
            avg_response_time: 1.84,
            p95_response_time: 3.1,
            time_series: [{ timestamp: '2026-11-20T09:00:00.000Z', completed: 11, failed: 1 }],
          },
          {
            agent_id: otherAgent,
            completed: 0,
            failed: 0,
            canceled: 0,
            success_rate: 0,
            avg_response_time: 0,
            p95_response_time: 0,
            time_series: [{ timestamp: '2026-11-20T09:00:00.000Z', completed: 0, failed: 0 }],
          },
        ],
        period: { start_time: '2026-11-20T09:00:00.000Z', end_time: '2026-11-20T10:00:00.000Z' },
      },
    },
  ],
  problems: ['project_not_found'],
})

export const agentStatisticsOperations: Operation[] = [listAgentStatistics] as Operation[]
