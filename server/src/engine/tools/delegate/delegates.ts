import type { Sql } from '../../../platform/postgres/database.ts'
import type { AgentConfig } from '../../task.ts'
import { ToolError, type Tool, type Toolset } from '../tool.ts'

/** An agent that another one may delegate tasks to, as needed for its tool. */
interface DelegateRow {
  id: string
  name: string
  description: string
  input_schema: Record<string, unknown> | null
}

/** The parameters for an agent without an `input_schema`. */
const textInput = {
  type: 'object',
  properties: {
    input: { type: 'string', minLength: 1, description: 'What the agent is asked to do, with all it needs.' },
  },
  required: ['input'],
  additionalProperties: false,
}

/** A toolset with a tool for each agent in `config.delegates`; deleted agents are left out. */
export async function withDelegates(
  sql: Sql,
  toolset: Toolset,
  project_id: number,
  delegates: NonNullable<AgentConfig['delegates']>,
): Promise<Toolset> {
  const rows = await sql<DelegateRow>`
    select id, name, description, config -> 'input_schema' as input_schema from agent
    where project_id = ${project_id} and id = any(${[...new Set(delegates.map(({ agent_id }) => agent_id))]})`
  const agents = new Map(rows.map((row) => [row.id, row]))
  const tools = new Map<string, Tool>(toolset.tools)
  const missing = [...toolset.missing]
  for (const { agent_id, version = null, name, description } of delegates) {
    const agent = agents.get(agent_id)
    if (!agent) missing.push({ name: `delegate_${name ?? agent_id}`, reason: 'the project has no such agent' })
    else {
      const tool = delegateName(name ?? agent.name)
      tools.set(tool, {
        name: tool,
        kind: 'delegate',
        description:
          description ?? (agent.description || `Gives the agent ${agent.name} a task and waits for its result.`),
        parameters: agent.input_schema ?? textInput,
        safety: 'safe',
        delegate: { agent_id, version, takes_object: agent.input_schema !== null },
        call: neverCalled,
      })
    }
  }
  return { ...toolset, tools, missing }
}

/** The name of a delegate's tool: letters, digits, `_` and `-`, at most 64. */
export function delegateName(name: string): string {
  return `delegate_${name.normalize('NFKD').replaceAll(/[^A-Za-z0-9_-]+/g, '_')}`.slice(0, 64)
}

/** Only reached by a bug. */
async function neverCalled(): Promise<never> {
  throw new ToolError('not_callable', 'This tool is a task of another agent.')
}
