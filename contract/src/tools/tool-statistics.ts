import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { agentParameter, Named, Nullable, projectParameter, Timestamp } from '../core/schemas.ts'

/** Bounds of tool statistics. */
export const toolStatisticsBounds = {
  /** Period over which calls and failures are counted. */
  counted_hours: 24,
  /** Period in which the last use is searched. */
  last_use_days: 30,
  /** Number of newest steps of each agent in which the last use is searched. */
  last_use_steps: 2000,
  /** Agents that are listed. */
  agents: 20,
} as const

const example = {
  tool_id: 'tool_01jcm3x5v8f9a2b4c6d8e0g2h4',
  agents: [{ id: agentParameter.example, name: 'forecaster' }],
  agents_total: 1,
  calls: 120,
  failures: 2,
  last_used_at: '2026-11-20T09:31:00.000Z',
  last_failure: {
    at: '2026-11-20T08:02:11.000Z',
    task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4',
    message: 'The server answered HTTP 503.',
  },
}

export const listToolStatistics = defineOperation({
  error_format: 'agents',
  tag: 'Tools',
  credentials: anyCredential,
  extension: true,
  id: 'listToolStatistics',
  command: 'tools statistics',
  sdk: 'tools.statistics',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/tools/statistics',
  params: { project_id: projectParameter },
  summary: 'Read the statistics of several tools',
  description: `The agents that use a tool, their calls in the last ${toolStatisticsBounds.counted_hours} hours, and the last use within ${toolStatisticsBounds.last_use_days} days and the newest ${toolStatisticsBounds.last_use_steps} steps of each agent. Tools that the project does not have are omitted.`,
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: Type.Object({
    tool_ids: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: `^[a-z0-9_]{1,64}(,[a-z0-9_]{1,64}){0,${bounds.page_limit - 1}}$`,
        description: `Up to ${bounds.page_limit} tool ids, separated by commas. Default: the ${bounds.page_limit} newest tools.`,
      }),
    ),
  }),
  responses: [
    {
      status: 200,
      description: 'The statistics of each tool, newest tools first.',
      schema: Named(
        'ToolStatistics',
        Type.Object({
          statistics: Type.Array(
            Type.Object({
              tool_id: Type.String(),
              agents: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }), {
                description: `The first ${toolStatisticsBounds.agents} agents whose \`config.tools\` contain it, by name.`,
              }),
              agents_total: Type.Integer({ minimum: 0, description: 'Number of agents that use it.' }),
              calls: Type.Integer({
                minimum: 0,
                description: 'Calls of these agents that started in the last 24 hours.',
              }),
              failures: Type.Integer({
                minimum: 0,
                description: 'Calls that failed, or whose outcome is unknown.',
              }),
              last_used_at: Nullable(Timestamp),
              last_failure: Nullable(
                Type.Object(
                  { at: Timestamp, task_id: Type.String(), message: Type.String() },
                  { description: 'The latest failure.' },
                ),
              ),
            }),
          ),
        }),
      ),
      example: { statistics: [example] },
    },
  ],
  problems: ['project_not_found'],
})

export const toolStatisticsOperations: Operation[] = [listToolStatistics] as Operation[]
