import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { agentParameter, Named, Nullable, projectParameter, Timestamp } from '../core/schemas.ts'

/** How far tool statistics look. */
export const toolStatisticsBounds = {
  /** Calls and failures are counted over this long. */
  counted_hours: 24,
  /** The last use is looked for over this long. */
  last_use_days: 30,
  /** Of each agent so many of its newest steps are looked through for the last use. */
  last_use_steps: 2000,
  /** Agents that are named. */
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
  description: `Which agents have a tool, how often they called it in the last ${toolStatisticsBounds.counted_hours} hours, and when they last did, within ${toolStatisticsBounds.last_use_days} days and the newest ${toolStatisticsBounds.last_use_steps} steps of each agent. Tools that the project does not have are left out.`,
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: Type.Object({
    tool_ids: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: `^[a-z0-9_]{1,64}(,[a-z0-9_]{1,64}){0,${bounds.page_limit - 1}}$`,
        description: `Up to ${bounds.page_limit} of them, with commas between. The ${bounds.page_limit} newest where nothing is said.`,
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
                description: `Agents whose \`config.tools\` name it, by name; the first ${toolStatisticsBounds.agents}.`,
              }),
              agents_total: Type.Integer({ minimum: 0, description: 'How many there are.' }),
              calls: Type.Integer({
                minimum: 0,
                description: 'Calls of these agents that began in the last 24 hours.',
              }),
              failures: Type.Integer({
                minimum: 0,
                description: 'Those of them that failed, or whose outcome is unknown.',
              }),
              last_used_at: Nullable(Timestamp),
              last_failure: Nullable(
                Type.Object(
                  { at: Timestamp, task_id: Type.String(), message: Type.String() },
                  { description: 'The newest of the failures.' },
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
