import Type, { type Static, type TOptional, type TProperties, type TSchema, type TUnsafe } from 'typebox'
import { agentActions, agentStates, type AgentAction } from './agent-lifecycle.ts'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  agentParameter,
  boundedJson,
  Choice,
  Confirmation,
  Defaulted,
  FreeObject,
  Named,
  NameText,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  revisionHeader,
  Timestamp,
} from '../core/schemas.ts'
import { contextDefaults, efforts, maxTokensDefault, promptCaches, serviceTiers } from '../models/model-dials.ts'
import { approvalTimeouts, toolPolicies } from '../tasks/task-lifecycle.ts'

const tag = 'Agents'
const base = '/api/v1/projects/{project_id}/agents'

const toolName = Type.String({
  minLength: 1,
  maxLength: bounds.config_tool,
  pattern: '^[A-Za-z0-9][A-Za-z0-9_.:/-]*$',
  description: 'A tool name: letters, digits and _ . : / -',
})
const model = Type.String({
  minLength: 1,
  maxLength: bounds.config_model,
  pattern: '^[^\\s\\u0000-\\u001f\\u007f](?:[^\\u0000-\\u001f\\u007f]*[^\\s\\u0000-\\u001f\\u007f])?$',
  description: '`provider/model`, or a bare name for the default provider.',
})

function optional<T extends TProperties>(members: T) {
  return Object.fromEntries(Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)])) as {
    [Name in keyof T]: TOptional<T[Name]>
  }
}

function nullable<T extends TProperties>(members: T) {
  const entries = Object.entries(members).map(([name, schema]) => [name, Nullable(schema)])
  return Object.fromEntries(entries) as { [Name in keyof T]: TUnsafe<Static<T[Name]> | null> }
}

const taskBudgetMembers = {
  max_cost_usd: Type.Optional(Nullable(Type.Number({ minimum: 0, maximum: bounds.budget_cost_usd }))),
  max_tokens: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: bounds.config_max_tokens }))),
  max_steps: Type.Optional(Nullable(Type.Integer({ minimum: 1, maximum: bounds.config_steps }))),
  max_tool_calls: Type.Optional(Nullable(Type.Integer({ minimum: 0, maximum: bounds.budget_tool_calls }))),
}

/** Limits of what one task may spend. Null is as good as absent. */
export const TaskBudget = Type.Object(taskBudgetMembers)
const configBudget = Type.Object(taskBudgetMembers, { additionalProperties: true })

// No `default` in a configuration: it would be written into the agent, and over what an update leaves alone.
const retryMembers = {
  max_attempts: Type.Integer({
    minimum: 1,
    maximum: bounds.config_retry_attempts,
    description: 'Tries of one call of one model: 5 where nothing is said.',
  }),
  initial_delay_seconds: Type.Number({
    minimum: 0,
    maximum: bounds.config_retry_delay_seconds,
    description: 'Doubled each time: 0.5 where nothing is said.',
  }),
  max_delay_seconds: Type.Number({
    minimum: 0,
    maximum: bounds.config_retry_delay_seconds,
    description: '30 where nothing is said.',
  }),
}
const retryText = 'Used where the provider does not say how long to wait.'
const retry = Type.Object(optional(retryMembers), { additionalProperties: true, description: retryText })
const retryPatch = Type.Object(optional(nullable(retryMembers)), {
  additionalProperties: true,
  description: `${retryText} Merged member by member: null removes.`,
})

const contextMembers = {
  compact_at_tokens: Type.Integer({
    minimum: 1,
    maximum: bounds.config_max_tokens,
    description: `Tokens of a conversation from which on it is compacted: ${contextDefaults.compact_at_percent} % of the model's context window where nothing is said.`,
  }),
  keep_last_steps: Type.Integer({
    minimum: 1,
    maximum: bounds.config_keep_last_steps,
    description: `The last steps, which are kept as they are: ${contextDefaults.keep_last_steps} where nothing is said.`,
  }),
  model: { ...model, description: 'The model that writes the summary; the one of the task where nothing is said.' },
}
const contextText = 'When the earlier part of a long conversation is replaced by a summary.'
const context = Type.Object(optional(contextMembers), { additionalProperties: true, description: contextText })
const contextPatch = Type.Object(optional(nullable(contextMembers)), {
  additionalProperties: true,
  description: `${contextText} Merged member by member: null removes.`,
})

/** A JSON Schema as a value. It is read by the service where it is set: see `schemaError`. */
export const DataSchema = (description: string) =>
  Type.Unsafe<Record<string, unknown>>(
    boundedJson(
      {
        type: 'object',
        additionalProperties: true,
        description: `${description} JSON Schema 2020-12 of type \`object\`, without references to other documents.`,
      },
      bounds.data_schema_bytes,
    ),
  )

const policiesText = 'By the name of a tool: `auto` runs it, `ask` waits for an approval, `deny` refuses it.'
const policies = <Value extends TSchema>(value: Value, description: string) =>
  Type.Unsafe<Record<string, Static<Value>>>({
    type: 'object',
    additionalProperties: value,
    maxProperties: bounds.config_tools,
    propertyNames: { maxLength: bounds.config_tool },
    description,
  })
const policy = Choice(toolPolicies)

const openaiDoor = {
  instructions: Type.Boolean({ description: 'Whether requests may add instructions: true where nothing is said.' }),
  overrides: Type.Array(Choice(['temperature', 'reasoning']), {
    maxItems: 2,
    description:
      'What requests may set instead of the agent: `temperature`, and with `reasoning` the effort. Nothing where nothing is said.',
  }),
  progress: Choice(['reasoning_content'], { description: 'Where chats show calls of tools on the server.' }),
  show_tool_output: Type.Boolean({
    description: 'Whether responses show results of tools: true where nothing is said.',
  }),
}
const published = Type.Boolean({ description: 'Whether the protocol serves the agent: false where nothing is said.' })
const mcpDoor = {
  published,
  wait_seconds: Type.Integer({
    minimum: 0,
    maximum: bounds.door_wait_seconds,
    description: 'Seconds that a call waits for its task before it answers with a handle: 50 where nothing is said.',
  }),
  on_close: Choice(['cancel', 'continue'], {
    description:
      'What happens to a task when its caller closes the connection before it got a handle: `cancel` where nothing is said.',
  }),
}
const a2aDoor = { published, v0_3: Type.Boolean({ description: 'Whether clients of version 0.3 are served.' }) }
const aguiDoor = {
  published,
  context: Type.Boolean({ description: 'Whether the model reads context and state of the page.' }),
}
const doorsText = 'Which protocols of others serve the agent, and how.'
const openaiText = 'The OpenAI protocol at /v1: true where nothing is said.'
const open = { additionalProperties: true }
const openaiOf = Type.Object(optional(openaiDoor), open)
const openaiPatch = Type.Object(optional(nullable(openaiDoor)), open)
const doors = Type.Object(
  optional({
    openai: Type.Unsafe<boolean | Static<typeof openaiOf>>({
      anyOf: [{ type: 'boolean' }, openaiOf],
      description: openaiText,
    }),
    mcp: Type.Object(optional(mcpDoor), open),
    a2a: Type.Object(optional(a2aDoor), open),
    agui: Type.Object(optional(aguiDoor), open),
  }),
  { ...open, description: doorsText },
)
const doorsPatch = Type.Object(
  optional({
    openai: Type.Unsafe<boolean | Static<typeof openaiPatch> | null>({
      anyOf: [{ type: 'boolean' }, Nullable(openaiPatch)],
      description: openaiText,
    }),
    ...nullable({
      mcp: Type.Object(optional(nullable(mcpDoor)), open),
      a2a: Type.Object(optional(nullable(a2aDoor)), open),
      agui: Type.Object(optional(nullable(aguiDoor)), open),
    }),
  }),
  { ...open, description: `${doorsText} Merged member by member: null removes.` },
)

const Delegate = Type.Object({
  agent_id: Type.String({ minLength: 1, maxLength: 100, description: 'An agent of the same project.' }),
  version: Type.Optional(
    Type.Integer({ minimum: 0, maximum: bounds.offset, description: 'Its version; the newest where nothing is said.' }),
  ),
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: bounds.tool_name - 'delegate_'.length,
      pattern: '^[A-Za-z0-9_-]*$',
      description: "The end of the tool's name; made from the agent's name where nothing is said.",
    }),
  ),
  description: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: bounds.tool_description,
      description: "For the model; the agent's description where nothing is said.",
    }),
  ),
})

/** Names of queues of remote workers. */
export const queuePattern = '^[A-Za-z0-9][A-Za-z0-9._-]*$'
export const QueueName = Type.String({
  minLength: 1,
  maxLength: bounds.work_queue,
  pattern: queuePattern,
  description: 'A queue of remote workers: letters, digits and . _ -',
})

const runtimeMembers = {
  kind: Choice(['remote'] as const, { description: '`remote`: workers on your side run the tasks.' }),
  queue: QueueName,
}
const runtimeText =
  'Where its tasks run. Without it the service runs them; with `remote` workers on your side claim them from a queue.'

const configMembers = {
  model: Type.Optional(model),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: bounds.config_temperature })),
  max_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: bounds.config_max_tokens,
      description: `Tokens of one answer, reasoning included: ${maxTokensDefault.plain} where nothing is said, ${maxTokensDefault.reasoning} where the model reasons.`,
    }),
  ),
  effort: Type.Optional(
    Choice(efforts, {
      description: 'How much the model reasons. A level that the model lacks is mapped to the nearest that it has.',
    }),
  ),
  service_tier: Type.Optional(
    Choice(serviceTiers, { description: "The provider's tier. Left out where the provider does not have it." }),
  ),
  prompt_cache: Type.Optional(
    Choice(promptCaches, { description: 'Prompt caching by the provider: `auto` where nothing is said.' }),
  ),
  context: Type.Optional(context),
  input_schema: Type.Optional(DataSchema('What the `input` of a task must be: with it, an object.')),
  output_schema: Type.Optional(DataSchema('What `output.data` of a task must be.')),
  tools: Type.Optional(Type.Array(toolName, { maxItems: bounds.config_tools })),
  system_prompt: Type.Optional(Type.String({ maxLength: bounds.config_system_prompt })),
  fallback_models: Type.Optional(
    Type.Array(model, {
      maxItems: bounds.config_fallback_models,
      description: 'Models that take over when `model` fails for good.',
    }),
  ),
  max_steps: Type.Optional(
    Type.Integer({ minimum: 1, maximum: bounds.config_steps, description: 'Steps of one task at most.' }),
  ),
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: bounds.config_timeout_seconds,
      description: 'Seconds that one task may take.',
    }),
  ),
  max_concurrent_tasks: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: bounds.config_concurrent_tasks,
      description: 'Tasks of the agent that may run at the same time.',
    }),
  ),
  tool_policies: Type.Optional(policies(policy, policiesText)),
  approval_timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 60,
      maximum: bounds.config_approval_timeout_seconds,
      description: 'Seconds that an approval waits for its answer: 7 days where nothing is said.',
    }),
  ),
  approval_on_timeout: Type.Optional(
    Choice(approvalTimeouts, {
      description: 'What happens then: the call is rejected (where nothing is said), or the task canceled.',
    }),
  ),
  retry: Type.Optional(retry),
  budget: Type.Optional(configBudget),
  delegates: Type.Optional(
    Type.Array(Delegate, {
      maxItems: bounds.config_delegates,
      description: 'Agents of the project that this one may give tasks: each is a tool `delegate_<name>`.',
    }),
  ),
  max_depth: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: bounds.config_max_depth,
      description: `How deep its tasks may be delegated, counted from the task at the root: ${bounds.config_max_depth_default} where nothing is said.`,
    }),
  ),
  doors: Type.Optional(doors),
  runtime: Type.Optional(Type.Object(runtimeMembers, { additionalProperties: true, description: runtimeText })),
}

const environmentKey = '^[A-Za-z_][A-Za-z0-9_]{0,127}$'
const environmentValue = { type: 'string', maxLength: bounds.config_environment_value, 'x-secret': true }
const environment = <Value extends string | null>(value: object) =>
  Type.Unsafe<Record<string, Value>>({
    type: 'object',
    additionalProperties: value,
    maxProperties: bounds.config_environment_variables,
    propertyNames: { pattern: environmentKey },
    'x-secret': true,
    description: 'Kept encrypted. Names: letters, digits and _.',
  })

const bounded = { additionalProperties: true, 'x-max-json-bytes': bounds.config_bytes }

/** An agent's configuration as it is given; members that the service does not know are kept and returned (decision D14). */
export const AgentConfigInput = Named(
  'AgentConfigInput',
  Type.Object(
    { ...configMembers, environment_variables: Type.Optional(environment<string>(environmentValue)) },
    bounded,
  ),
)

/** Members that a change may leave out or, by null, remove; so are the members of those that are merged by name. */
const nullableMembers = {
  ...optional(nullable(configMembers)),
  tool_policies: Type.Optional(Nullable(policies(Nullable(policy), `${policiesText} Merged by name: null removes.`))),
  retry: Type.Optional(Nullable(retryPatch)),
  context: Type.Optional(Nullable(contextPatch)),
  doors: Type.Optional(Nullable(doorsPatch)),
}

/** A change of the configuration: a JSON Merge Patch, null removes (decision D37). */
export const AgentConfigPatch = Named(
  'AgentConfigPatch',
  Type.Object(
    {
      ...nullableMembers,
      environment_variables: Type.Optional(
        Nullable(environment<string | null>({ ...environmentValue, nullable: true })),
      ),
    },
    bounded,
  ),
)

/** An agent's configuration as it is answered. */
export const AgentConfig = Named(
  'AgentConfig',
  Type.Object(
    {
      ...configMembers,
      model: Type.String({ description: '`provider/model`, or a bare name for the default provider.' }),
      environment_variables: Type.Optional(
        Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } }),
      ),
    },
    { additionalProperties: true },
  ),
)

const metadataSchema = {
  type: 'object',
  additionalProperties: true,
  maxProperties: bounds.metadata_keys,
  propertyNames: { maxLength: bounds.metadata_key },
  description: 'Free-form members. `created_by` and `version` are set by the service.',
}
/** Free-form members of the caller's own. */
export const MetadataInput = Type.Unsafe<Record<string, unknown>>(boundedJson(metadataSchema, bounds.metadata_bytes))

const members = {
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  project_id: Type.String({ description: "`proj_` and the project's number." }),
  status: Choice(agentStates),
  config: AgentConfig,
  metadata: FreeObject,
  created_at: Timestamp,
  updated_at: Timestamp,
  last_activity: Nullable(Timestamp),
}

/** An agent (spec 2.2). */
export const Agent = Named('Agent', Type.Object(members))

/** What get-agent adds (spec 2.2, decision D42). */
export const AgentStats = Named(
  'AgentStats',
  Type.Object({
    total_tasks: Type.Integer({ minimum: 0 }),
    completed_tasks: Type.Integer({ minimum: 0 }),
    failed_tasks: Type.Integer({ minimum: 0 }),
    success_rate: Type.Number({ minimum: 0, maximum: 1 }),
    avg_response_time: Type.Number({ minimum: 0, description: 'Seconds.' }),
  }),
)

const AgentWithStats = Named('AgentWithStats', Type.Object({ ...members, stats: AgentStats }))

/** An agent, for the examples of the document. */
export const agentExample = {
  id: agentParameter.example,
  name: 'support',
  description: 'Answers questions of customers.',
  project_id: 'proj_42',
  status: 'creating',
  config: {
    model: 'openai/gpt-4o-mini',
    temperature: 0.2,
    max_tokens: 800,
    tools: [],
    system_prompt: 'Answer in one sentence.',
  },
  metadata: { team: 'support', created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4', version: '1.0.0' },
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
  last_activity: null,
}
const { system_prompt: _prompt, ...listedConfig } = agentExample.config
const listedExample = { ...agentExample, status: 'running', config: listedConfig }

const common = { error_format: 'agents', tag, credentials: anyCredential } as const
const ofProject = { ...common, path: base, params: { project_id: projectParameter } } as const
/** What every operation on one agent shares. */
export const ofAgent = {
  ...common,
  path: `${base}/{agent_id}`,
  params: { project_id: projectParameter, agent_id: agentParameter },
} as const

export const listAgents = defineOperation({
  ...ofProject,
  id: 'listAgents',
  command: 'agents list',
  sdk: 'agents.list',
  method: 'GET',
  summary: 'List agents',
  description:
    'Agents of a project, newest first unless sorted otherwise. `config` comes without `system_prompt` and `environment_variables`.',
  scope: 'agents:read',
  bucket: 'agents.list',
  query: offsetQuery({
    status: Type.Optional(Choice(agentStates, { description: 'Only agents in this state.' })),
    search: Type.Optional(
      Type.String({
        maxLength: bounds.search,
        description: 'Part of the name or the description, without regard to case.',
      }),
    ),
    model: Type.Optional(
      Type.String({ minLength: 1, maxLength: bounds.config_model, description: 'Only agents of this model.' }),
    ),
    tag: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.agent_tag,
        description: 'Only agents that have it in `metadata.tags`, a list of words.',
      }),
    ),
    sort: Defaulted(
      Choice(['created_at', '-created_at', 'name', '-name'], {
        default: '-created_at',
        description: 'A minus sorts downwards.',
      }),
    ),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of agents.',
      schema: Named('AgentList', Type.Object({ agents: Type.Array(Agent), pagination: OffsetPagination })),
      example: { agents: [listedExample], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const createAgent = defineOperation({
  ...ofProject,
  id: 'createAgent',
  audit: 'agent.created',
  command: 'agents create',
  sdk: 'agents.create',
  method: 'POST',
  summary: 'Create an agent',
  description:
    'Creates an agent. It answers `creating` and runs as soon as it is provisioned, normally within a second. Only `name` is required.',
  scope: 'agents:write',
  bucket: 'agents.create',
  body: Type.Object({
    name: NameText(bounds.agent_name, 'Unique in the project.'),
    description: Type.Optional(Type.String({ maxLength: bounds.agent_description })),
    config: Type.Optional(AgentConfigInput),
    metadata: Type.Optional(MetadataInput),
  }),
  body_example: {
    name: 'support',
    description: agentExample.description,
    config: agentExample.config,
    metadata: { team: 'support' },
  },
  responses: [
    { status: 201, description: 'The agent.', schema: Agent, example: agentExample, headers: revisionHeader },
  ],
  problems: ['project_not_found', 'agent_conflict'],
})

export const getAgent = defineOperation({
  ...ofAgent,
  id: 'getAgent',
  command: 'agents get',
  sdk: 'agents.get',
  method: 'GET',
  summary: 'Read an agent',
  description: 'The agent with its statistics over all its tasks.',
  scope: 'agents:read',
  bucket: 'agents.get',
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The agent.',
      schema: AgentWithStats,
      example: {
        ...agentExample,
        status: 'running',
        stats: {
          total_tasks: 12,
          completed_tasks: 11,
          failed_tasks: 1,
          success_rate: 0.9166666666666666,
          avg_response_time: 1.84,
        },
      },
      headers: revisionHeader,
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

export const updateAgent = defineOperation({
  ...ofAgent,
  id: 'updateAgent',
  audit: 'agent.updated',
  command: 'agents update',
  sdk: 'agents.update',
  method: 'PUT',
  summary: 'Update an agent',
  description:
    '`config` and `metadata` are merged as JSON Merge Patch (RFC 7396): given members replace, missing ones stay, `null` removes. `config.input_schema` and `config.output_schema` are replaced whole. Answers `updating`; the agent returns to its state before, normally within a second. Tasks already created keep the version they were created with.',
  scope: 'agents:write',
  bucket: 'agents.update',
  revisioned: true,
  body: Type.Object({
    name: Type.Optional(NameText(bounds.agent_name, 'Unique in the project.')),
    description: Type.Optional(Nullable(Type.String({ maxLength: bounds.agent_description }))),
    config: Type.Optional(AgentConfigPatch),
    metadata: Type.Optional(MetadataInput),
  }),
  body_example: { name: 'support', config: { temperature: 0.7 } },
  responses: [
    {
      status: 200,
      description: 'The agent.',
      schema: Agent,
      example: { ...agentExample, status: 'updating' },
      headers: revisionHeader,
    },
  ],
  problems: ['project_not_found', 'agent_not_found', 'agent_conflict'],
})

export const deleteAgent = defineOperation({
  ...ofAgent,
  id: 'deleteAgent',
  audit: 'agent.deleted',
  command: 'agents delete',
  sdk: 'agents.delete',
  method: 'DELETE',
  summary: 'Delete an agent',
  description: 'Cancels its tasks, then removes the agent with its tasks, logs and metrics. Its name is free at once.',
  scope: 'agents:write',
  bucket: 'agents.delete',
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The agent is gone.',
      schema: Confirmation({ agent_id: Type.String() }),
      example: { message: 'Agent deleted', agent_id: agentExample.id },
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

const actionTexts = {
  start: 'Lets a paused or stopped agent run; its waiting and queued tasks go on.',
  pause: 'The step in flight ends and no further one begins. New tasks are accepted and queue.',
  stop: 'A model call in flight is aborted, a tool call has 30 seconds to end. Its tasks wait at their last finished step; new ones are refused.',
  restart: 'Stops the agent, then starts it; from any state.',
} as const

/** Actions of the audit log, after `agent.`. */
const pastOf = { start: 'started', pause: 'paused', stop: 'stopped', restart: 'restarted' } as const

function action<const Verb extends AgentAction>(verb: Verb) {
  const { to: status, done } = agentActions[verb]
  return defineOperation({
    ...ofAgent,
    path: `${base}/{agent_id}/${verb}`,
    id: `${verb}Agent`,
    audit: `agent.${pastOf[verb]}`,
    command: `agents ${verb}`,
    sdk: `agents.${verb}`,
    method: 'POST',
    summary: `${verb[0]!.toUpperCase()}${verb.slice(1)} an agent`,
    description: `${actionTexts[verb]} An agent that is already there answers the same and does not change.`,
    scope: 'agents:write',
    bucket: 'agents.action',
    revisioned: true,
    responses: [
      {
        status: 200,
        description: 'The state that the agent is in now.',
        schema: Named('AgentActionResult', Confirmation({ agent_id: Type.String(), status: Choice(agentStates) })),
        example: { message: done, agent_id: agentExample.id, status },
        headers: revisionHeader,
      },
    ],
    problems: ['project_not_found', 'agent_not_found', 'resource_conflict'],
  })
}

export const startAgent = action('start')
export const pauseAgent = action('pause')
export const stopAgent = action('stop')
export const restartAgent = action('restart')

export const launchAgent = defineOperation({
  id: 'launchAgent',
  audit: 'agent.launched',
  command: 'agents launch',
  sdk: 'agents.launch',
  method: 'POST',
  path: '/api/v1/agents',
  error_format: 'control',
  tag,
  summary: 'Launch an agent by name',
  description:
    'Creates an agent of this name with defaults and lets it run; one that exists is started or restarted; one that runs is confirmed.',
  credentials: anyCredential,
  scope: 'agents:write',
  bucket: 'general',
  body: Type.Object({
    name: NameText(bounds.agent_name, 'Name of the agent in the project.'),
    project_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description: 'Number of the project.' }),
  }),
  body_example: { name: 'support', project_id: 42 },
  responses: [
    {
      status: 201,
      description: 'Created and launched.',
      schema: Confirmation({}),
      example: { message: "Agent 'support' launched in project 42" },
    },
    {
      status: 200,
      description: 'It existed; it runs.',
      schema: Confirmation({}),
      example: { message: "Agent 'support' launched in project 42" },
    },
  ],
  problems: ['project_not_found'],
})

export const agentOperations: Operation[] = [
  listAgents,
  createAgent,
  getAgent,
  updateAgent,
  deleteAgent,
  startAgent,
  pauseAgent,
  stopAgent,
  restartAgent,
  launchAgent,
] as Operation[]
