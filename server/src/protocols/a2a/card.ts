import type { AgentCard, AgentSkill, SecurityScheme } from '@a2a-js/sdk'
import { approvalExtension } from '#contract/doors/a2a.ts'
import type { DoorAgent } from '../door-keys.queries.ts'
import { settingsOf } from '../settings-of.ts'

/** The settings in `config.doors.a2a` of an agent. */
export interface A2aConfig {
  published: boolean
  /** Whether clients of version 0.3 are served too. */
  v0_3: boolean
}

export function a2aConfig(config: Record<string, unknown>): A2aConfig {
  const a2a = settingsOf(config, 'a2a')
  return { published: a2a['published'] === true, v0_3: a2a['v0_3'] === true }
}

const textModes = ['text/plain']
const modes = ['text/plain', 'application/json']
/** Media types of files that models accept. The agent's model may accept fewer. */
const inputModes = [...modes, 'image/png', 'image/jpeg', 'image/gif', 'image/webp', 'application/pdf']

/** The card of an agent: its interfaces, authentication and skills. */
export function cardOf(agent: DoorAgent, public_url: string, { extended = false } = {}): AgentCard {
  const { config } = agent
  const url = `${public_url}/a2a/agents/${agent.id}`
  const { v0_3 } = a2aConfig(config)
  const reached = (protocolBinding: string, protocolVersion: string) => ({
    url,
    protocolBinding,
    tenant: '',
    protocolVersion,
  })
  const outputs = config['output_schema'] === undefined ? textModes : modes
  const inputs = config['input_schema'] === undefined ? inputModes : ['application/json']
  return {
    name: agent.name,
    description: agent.description || `The agent ${agent.name}.`,
    version: String(agent.version),
    provider: undefined,
    supportedInterfaces: [
      reached('JSONRPC', '1.0'),
      reached('HTTP+JSON', '1.0'),
      ...(v0_3 ? [reached('JSONRPC', '0.3')] : []),
    ],
    capabilities: {
      streaming: true,
      pushNotifications: true,
      extendedAgentCard: true,
      extensions: [
        {
          uri: approvalExtension,
          description: 'A data part {approval_id, decision, arguments?} resolves an approval that a task waits for.',
          required: false,
          params: undefined,
        },
      ],
    },
    securitySchemes: {
      bearer: {
        scheme: {
          $case: 'httpAuthSecurityScheme',
          value: { description: 'An API key or an OAuth access token.', scheme: 'Bearer', bearerFormat: '' },
        },
      },
      oauth: oauthScheme(public_url),
    },
    securityRequirements: [
      { schemes: { bearer: { list: [] } } },
      { schemes: { oauth: { list: ['agents:read', 'tasks:write'] } } },
    ],
    defaultInputModes: inputs,
    defaultOutputModes: outputs,
    skills: [skillOf(agent), ...(extended ? toolSkills(agent) : [])],
    signatures: [],
  }
}

function oauthScheme(public_url: string): SecurityScheme {
  return {
    scheme: {
      $case: 'oauth2SecurityScheme',
      value: {
        description: '',
        oauth2MetadataUrl: '',
        flows: {
          flow: {
            $case: 'authorizationCode',
            value: {
              authorizationUrl: `${public_url}/oauth2/authorize`,
              tokenUrl: `${public_url}/oauth2/token`,
              refreshUrl: '',
              scopes: {
                'agents:read': 'Read tasks.',
                'tasks:write': 'Start, continue and cancel tasks.',
                'approvals:write': 'Resolve approvals.',
              },
              pkceRequired: true,
            },
          },
        },
      },
    },
  }
}

function skillOf(agent: DoorAgent): AgentSkill {
  const { tags } = agent.metadata
  const named = Array.isArray(tags) ? tags.filter((tag): tag is string => typeof tag === 'string') : []
  return skill(agent.name, agent.description || `What ${agent.name} does.`, named.length > 0 ? named : ['agent'])
}

/** The tools of the agent as skills, for authenticated callers only. */
function toolSkills({ config }: DoorAgent): AgentSkill[] {
  const tools = Array.isArray(config['tools']) ? config['tools'] : []
  return tools
    .filter((tool): tool is string => typeof tool === 'string')
    .map((tool) => skill(tool, `Uses the tool ${tool}.`, ['tool']))
}

function skill(id: string, description: string, tags: string[]): AgentSkill {
  const name = id
  return { id, name, description, tags, examples: [], inputModes: [], outputModes: [], securityRequirements: [] }
}
