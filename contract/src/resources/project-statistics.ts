import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Named, Timestamp } from '../core/schemas.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })

/** Number of newest tasks of a project whose changes count as activity. */
export const activeTasks = 20

const statistics = {
  project_id: 42,
  agents: 17,
  agents_running: 12,
  last_activity: '2026-11-20T09:31:00.000Z',
}

export const listProjectStatistics = defineOperation({
  error_format: 'control',
  tag: 'Projects',
  credentials: anyCredential,
  extension: true,
  bucket: 'general',
  id: 'listProjectStatistics',
  command: 'projects statistics',
  sdk: 'projects.statistics',
  method: 'GET',
  path: '/api/v1/projects/statistics',
  summary: 'Read the statistics of several projects',
  description:
    `The number of agents of each project, and its last activity. Projects that the organization does not have are omitted. ` +
    `Activity is a change of the project's name, a new agent, or a change of one of its ${activeTasks} newest tasks.`,
  scope: 'projects:read',
  query: Type.Object({
    project_ids: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: `^(proj_)?[1-9][0-9]{0,15}(,(proj_)?[1-9][0-9]{0,15}){0,${bounds.page_limit - 1}}$`,
        description: `Up to ${bounds.page_limit} project ids, separated by commas. Default: the ${bounds.page_limit} newest projects.`,
      }),
    ),
  }),
  responses: [
    {
      status: 200,
      description: 'The statistics of each project, newest projects first.',
      schema: Named(
        'ProjectStatistics',
        Type.Object({
          statistics: Type.Array(
            Type.Object({
              project_id: Type.Integer(),
              agents: count('Agents in any state.'),
              agents_running: count('Agents in the state `running`.'),
              last_activity: Timestamp,
            }),
          ),
        }),
      ),
      example: { statistics: [statistics] },
    },
  ],
  problems: ['invalid_query'],
})

export const projectStatisticsOperations: Operation[] = [listProjectStatistics] as Operation[]
