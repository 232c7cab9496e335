import { isObject } from '#contract/core/merge-patch.ts'
import { projectId } from '#contract/core/project-id.ts'
import { notFound } from '#contract/core/problems.ts'
import { agentActions } from '#contract/resources/agent-lifecycle.ts'
import { mcpBounds } from '#contract/doors/mcp.ts'
import { invoke } from '../../http/invoke.ts'
import type { McpCall } from './mcp-call.ts'
import { findAgentNamed, findProjectNamed } from './published.queries.ts'
import type { DoorTool } from './door-tool.ts'

const agent = { type: 'string', description: 'Id or name of the agent, or project/name.' }
const project = { type: 'string', description: 'Id or name of the project.' }
const time = { type: 'string', format: 'date-time' }
const limit = {
  type: 'integer',
  minimum: 1,
  maximum: mcpBounds.list,
  description: 'Maximum number of rows. Default: 20.',
}
const content = {
  name: { type: 'string', description: 'Name of the agent, unique in its project.' },
  description: { type: 'string' },
  config: { type: 'object', description: 'Model, system_prompt, tools and limits, as in the API.' },
  metadata: { type: 'object' },
}
const tool = (
  name: string,
  description: string,
  properties: Record<string, unknown>,
  required: string[],
  annotations: Record<string, unknown>,
): DoorTool => ({
  ...{ name, description, annotations, scope: 'agents:write' },
  inputSchema: { type: 'object', properties, required, additionalProperties: false },
})
const reads = { readOnlyHint: true, openWorldHint: false }
const changes = { readOnlyHint: false, destructiveHint: false, openWorldHint: false }

/** Tools that manage agents; served only if the operator enables them. */
export const manageTools: readonly DoorTool[] = [
  tool(
    'get_usage',
    'Returns the usage of a project in tokens and dollars, by agent, model, tool or API key.',
    {
      project,
      group_by: { type: 'string', description: 'One or more of agent, model, tool and api_key, separated by commas.' },
      start_time: time,
      end_time: time,
      limit,
    },
    ['project'],
    { title: 'Read usage', ...reads },
  ),
  tool(
    'search_logs',
    'Lists log entries of an agent or a project, newest first.',
    {
      ...{
        project,
        agent,
        search: { type: 'string' },
        level: { type: 'string', enum: ['debug', 'info', 'warning', 'error'] },
      },
      ...{ task_id: { type: 'string' }, start_time: time, end_time: time, limit },
    },
    [],
    { title: 'Search logs', ...reads },
  ),
  tool('create_agent', 'Creates an agent in a project.', { project, ...content }, ['project', 'name'], {
    title: 'Create an agent',
    ...changes,
  }),
  tool(
    'update_agent',
    'Changes an agent. Given members of config and metadata replace, null removes, others stay.',
    { agent, ...content },
    ['agent'],
    { title: 'Change an agent', ...changes, destructiveHint: true, idempotentHint: true },
  ),
  tool(
    'change_agent_state',
    'Starts, pauses, stops or restarts an agent.',
    { agent, action: { type: 'string', enum: Object.keys(agentActions) } },
    ['agent', 'action'],
    { title: 'Start or stop an agent', ...changes, destructiveHint: true },
  ),
]

/** Calls the API operation of a management tool. Returns the name of the result and the result. */
export async function manage(call: McpCall, name: string, args: Record<string, unknown>): Promise<[string, unknown]> {
  const { http, sql, principal } = call
  const ofProject = async (): Promise<Record<string, string>> => {
    const id = await findProjectNamed(sql, principal, String(args['project']))
    if (id === undefined) throw notFound('project_not_found', 'project', String(args['project']).slice(0, 100))
    return { project_id: projectId(id) }
  }
  const ofAgent = async (): Promise<Record<string, string>> => {
    const found = await findAgentNamed(sql, principal, String(args['agent']))
    if (!found) throw notFound('agent_not_found', 'agent', String(args['agent']).slice(0, 100))
    return { project_id: projectId(found.project_id), agent_id: found.id }
  }
  const pick = (...names: string[]): Record<string, unknown> =>
    Object.fromEntries(names.flatMap((one) => (args[one] === undefined ? [] : [[one, args[one]]])))
  const texts = (...names: string[]): Record<string, string> =>
    Object.fromEntries(Object.entries({ limit: 20, ...pick(...names) }).map(([key, value]) => [key, String(value)]))
  const members = ['name', 'description', 'config', 'metadata']
  switch (name) {
    case 'get_usage': {
      const query = texts('group_by', 'start_time', 'end_time', 'limit')
      return ['usage', await invoke(http, 'getUsage', call, { params: await ofProject(), query })]
    }
    case 'search_logs': {
      const query = texts('search', 'level', 'task_id', 'start_time', 'end_time', 'limit')
      const isAgents = args['agent'] !== undefined
      const params = isAgents ? await ofAgent() : await ofProject()
      const found = await invoke(http, isAgents ? 'getAgentLogs' : 'listProjectLogs', call, { params, query })
      return ['logs', isObject(found) ? found['logs'] : []]
    }
    case 'create_agent':
      return ['agent', await invoke(http, 'createAgent', call, { params: await ofProject(), body: pick(...members) })]
    case 'update_agent':
      return ['agent', await invoke(http, 'updateAgent', call, { params: await ofAgent(), body: pick(...members) })]
    default: {
      const action = String(args['action'])
      return ['agent', await invoke(http, `${action}Agent`, call, { params: await ofAgent() })]
    }
  }
}
