import Type from 'typebox'
import { bounds, projectLogSearch } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  agentParameter,
  Choice,
  cursorParameter,
  FreeObject,
  Named,
  OffsetCursorPagination,
  offsetQuery,
  projectParameter,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'

export const logLevels = ['debug', 'info', 'warn', 'error'] as const

/** Maximum length of a search text in code points. */
const logSearchMax = 200

/** An entry of an agent's log (spec 2.7). */
export const LogEntry = Named(
  'LogEntry',
  Type.Object({
    timestamp: Timestamp,
    level: Choice(logLevels),
    message: Type.String(),
    context: FreeObject,
  }),
)

const logQuery = offsetQuery(
  {
    level: Type.Optional(Choice(logLevels, { description: 'Only entries of this level.' })),
    search: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: logSearchMax,
        description: 'Only entries whose message contains this text. Case-insensitive.',
      }),
    ),
    task_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only entries of this task.' })),
    start_time: Type.Optional(TimestampInput),
    end_time: Type.Optional(TimestampInput),
    ...cursorParameter,
  },
  bounds.log_limit,
  bounds.log_limit_default,
)

export const getAgentLogs = defineOperation({
  id: 'getAgentLogs',
  command: 'agents logs',
  sdk: 'agents.logs',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/agents/{agent_id}/logs',
  error_format: 'agents',
  tag: 'Agents',
  summary: "Read an agent's log",
  description: 'Newest entries first. `level` matches exactly; `start_time` is inclusive, `end_time` exclusive.',
  credentials: anyCredential,
  scope: 'agents:read',
  bucket: 'agents.logs',
  params: { project_id: projectParameter, agent_id: agentParameter },
  query: logQuery,
  responses: [
    {
      status: 200,
      description: 'A page of entries.',
      schema: Named('LogList', Type.Object({ logs: Type.Array(LogEntry), pagination: OffsetCursorPagination })),
      example: {
        logs: [
          {
            timestamp: '2026-11-20T09:30:01.210Z',
            level: 'info',
            message: 'Task completed',
            context: { task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4', steps: 1, duration_seconds: 1.206 },
          },
        ],
        pagination: { total: 1, limit: 100, offset: 0, has_more: false, next_cursor: null },
      },
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

/** An entry of a project's logs, with its agent. */
const ProjectLogEntry = Named('ProjectLogEntry', Type.Object({ agent_id: Type.String(), ...LogEntry.properties }))

export const listProjectLogs = defineOperation({
  id: 'listProjectLogs',
  command: 'projects logs',
  sdk: 'projects.logs',
  method: 'GET',
  path: '/api/v1/projects/{project_id}/logs',
  error_format: 'agents',
  tag: 'Projects',
  summary: "Read the logs of a project's agents",
  description: `The logs of all agents merged, newest entries first, with the filters of an agent's log. A \`search\` examines the newest ${projectLogSearch.entries.toLocaleString('en')} entries that pass the other filters; \`total\` counts the matches among those.`,
  credentials: anyCredential,
  scope: 'agents:read',
  bucket: 'agents.logs',
  extension: true,
  params: { project_id: projectParameter },
  query: logQuery,
  responses: [
    {
      status: 200,
      description: 'A page of entries.',
      schema: Named(
        'ProjectLogList',
        Type.Object({ logs: Type.Array(ProjectLogEntry), pagination: OffsetCursorPagination }),
      ),
      example: {
        logs: [
          {
            agent_id: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4',
            timestamp: '2026-11-20T09:30:01.210Z',
            level: 'info',
            message: 'Task completed',
            context: { task_id: 'task_01jcm3x5v8f9a2b4c6d8e0g2h4', steps: 1, duration_seconds: 1.206 },
          },
        ],
        pagination: { total: 1, limit: 100, offset: 0, has_more: false, next_cursor: null },
      },
    },
  ],
  problems: ['project_not_found'],
})

export const logOperations: Operation[] = [getAgentLogs, listProjectLogs] as Operation[]
