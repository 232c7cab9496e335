import { doorNames } from '#contract/core/doors.ts'
import { connectionsOf, doorSetting, isPublishedTo, publishing } from '#contract/doors/connections.ts'
import type { Agent } from '#sdk/types.ts'
import { define, type AddCommand } from '../../define.ts'
import type { Context } from '../../context.ts'
import { UsageError } from '../../failure.ts'
import { plain } from '../../output/plain.ts'

/** `cadre agents connect`. */
export const addAgentsConnect: AddCommand = (program) =>
  define(program, 'agents connect', {
    summary: 'Show the settings for clients of other protocols.',
    description:
      'Prints settings and commands with the URL and the name of this agent. They read the API key from CADRE_API_KEY; the key needs `tasks:write` and, for MCP, `agents:read`.',
    args: ['<agent>'],
    examples: [
      'cadre agents connect agent_01jcm3x5v8f9a2b4c6d8e0g2h4 --as openai',
      'cadre agents connect helper --as mcp',
      'cadre agents connect helper --as a2a --jq .url',
    ],
    async run(context, [named = ''], { as }) {
      const protocol = doorNames.find((one) => one === as)
      if (!protocol) throw new UsageError(`--as must be one of ${doorNames.join(', ')}.`)
      const { out, base_url } = context
      const project_id = await context.project()
      const agent = await agentOf(context, project_id, named)
      const project = await context.client().projects.get(project_id)
      const of = { base_url, agent_id: agent.id, agent: agent.name, project: project.name }
      const { url, connections } = connectionsOf(protocol, of)
      const published = isPublishedTo(agent.config, protocol)
      if (out.options.json) return out.json({ as: protocol, agent_id: agent.id, url, published, connections })
      out.line(plain(url))
      for (const { client, text } of connections) {
        out.line('')
        out.line(`# ${client}`)
        for (const line of text.split('\n')) out.line(plain(line))
      }
      const change = JSON.stringify(publishing(protocol))
      if (!published)
        out.note(
          `The agent is not published to this protocol. Run: cadre agents update ${agent.id} --config '${change}'`,
        )
      const setting = doorSetting(protocol)
      if (setting) out.note(`The service must serve this protocol. Set ${setting}.`)
    },
  }).requiredOption('--as <protocol>', `The protocol of the client: ${doorNames.join(', ')}.`)

/** Finds an agent by id, or by name in the project. */
async function agentOf(context: Context, project: string, named: string): Promise<Agent> {
  const { agents } = context.client()
  if (named.startsWith('agent_')) return agents.get(project, named)
  const found = await agents.list(project, { search: named }).toArray({ max: 100 })
  const one = found.find(({ name }) => name === named)
  if (!one) throw new UsageError(`There is no agent ${named} in this project.`)
  return agents.get(project, one.id)
}
