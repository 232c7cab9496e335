import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Named, Timestamp } from '../core/schemas.ts'

const count = (description: string) => Type.Integer({ minimum: 0, description })

/** Of so many newest tasks of a project the last change is looked for. */
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
    `How many agents projects have, and when something last happened in them. Those that the organization has not are left out. ` +
    `Activity is a new name of the project, a new agent, and any change of one of its ${activeTasks} newest tasks.`,
  scope: 'projects:read',
  query: Type.Object({
    project_ids: Type.Optional(
      Type.String({
        minLength: 1,
        pattern: `^(proj_)?[1-9][0-9]{0,15}(,(proj_)?[1-9][0-9]{0,15}){0,${bounds.page_limit - 1}}$`,
        description: `Up to ${bounds.page_limit} of them, with commas between. Those of the ${bounds.page_limit} newest projects where nothing is said.`,
      }),
    ),
  }),
  responses: [
    {
      status: 200,
      description: 'The statistics of each project, the newest first.',
      schema: Named(
        'ProjectStatistics',
        Type.Object({
          statistics: Type.Array(
            Type.Object({
              project_id: Type.Integer(),
              agents: count('In any state.'),
              agents_running: count('In the state `running`.'),
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
