import Type from 'typebox'
import { Agent, agentExample, AgentConfig, ofAgent } from './agents.ts'
import { defineOperation, type Operation } from '../core/operation.ts'
import {
  Named,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  revisionHeader,
  Timestamp,
} from '../core/schemas.ts'

const versionNumber = Type.Integer({
  minimum: 0,
  maximum: 2_147_483_647,
  description:
    "Number of the version, from 0. Every update increments it. It is the last part of the agent's `metadata.version`.",
})

/** An immutable version of an agent: its state between two updates. */
const AgentVersion = Named(
  'AgentVersion',
  Type.Object({
    agent_id: Type.String(),
    version: versionNumber,
    current: Type.Boolean({ description: 'Whether this is the current version of the agent.' }),
    name: Type.String(),
    description: Type.String(),
    config: AgentConfig,
    created_by: Type.String({
      description: 'The user who created the version by creating, updating or rolling back the agent.',
    }),
    created_at: Timestamp,
  }),
)

const { id: agent_id, name, description, config } = agentExample
const example = {
  agent_id,
  version: 3,
  current: true,
  name,
  description,
  config,
  created_by: agentExample.metadata.created_by,
  created_at: '2026-11-20T09:30:00.000Z',
}
const { system_prompt: _prompt, ...listedConfig } = config
const common = { ...ofAgent, tag: 'Agents', extension: true } as const

export const listAgentVersions = defineOperation({
  ...common,
  path: `${ofAgent.path}/versions`,
  id: 'listAgentVersions',
  command: 'agents versions',
  sdk: 'agents.listVersions',
  method: 'GET',
  summary: "List an agent's versions",
  description: 'Newest first. `config` does not contain `system_prompt` and `environment_variables`.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({}),
  responses: [
    {
      status: 200,
      description: 'A page of versions.',
      schema: Named(
        'AgentVersionList',
        Type.Object({ versions: Type.Array(AgentVersion), pagination: OffsetPagination }),
      ),
      example: { versions: [{ ...example, config: listedConfig }], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

export const getAgentVersion = defineOperation({
  ...common,
  path: `${ofAgent.path}/versions/{version}`,
  params: { ...ofAgent.params, version: { description: 'The number of the version.', example: '3' } },
  id: 'getAgentVersion',
  command: 'agents version',
  sdk: 'agents.getVersion',
  method: 'GET',
  summary: 'Read a version of an agent',
  description: 'Any version, current or old, with its whole configuration.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The version.', schema: AgentVersion, example }],
  problems: ['project_not_found', 'agent_not_found', 'agent_version_not_found'],
})

export const rollbackAgent = defineOperation({
  ...common,
  path: `${ofAgent.path}/rollback`,
  id: 'rollbackAgent',
  audit: 'agent.rolled_back',
  command: 'agents rollback',
  sdk: 'agents.rollback',
  method: 'POST',
  summary: 'Roll an agent back',
  description:
    'Creates a new version with the configuration, environment variables and description of an old one, and with its name unless another agent has that name now. `metadata` does not change. The status is then `updating`, as after an update.',
  scope: 'agents:write',
  bucket: 'agents.update',
  revisioned: true,
  body: Type.Object({ version: { ...versionNumber, description: 'The version to return to.' } }),
  body_example: { version: 2 },
  responses: [
    {
      status: 200,
      description: 'The agent.',
      schema: Agent,
      example: { ...agentExample, status: 'updating' },
      headers: revisionHeader,
    },
  ],
  problems: ['project_not_found', 'agent_not_found', 'agent_version_not_found'],
})

export const agentVersionOperations: Operation[] = [listAgentVersions, getAgentVersion, rollbackAgent] as Operation[]
