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
import { contextDefaults, efforts, maxTokensDefault, promptCaches, serviceTiers } from '../models/call-settings.ts'
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

/** Limits of one task. Null means no limit, like an absent member. */
export const TaskBudget = Type.Object(taskBudgetMembers)
const configBudget = Type.Object(taskBudgetMembers, { additionalProperties: true })

// No `default` here: validation would write it into the agent, and an update would overwrite members that it does not
// mention.
const retryMembers = {
  max_attempts: Type.Integer({
    minimum: 1,
    maximum: bounds.config_retry_attempts,
    description: 'Maximum attempts of a call of one model. Default: 5.',
  }),
  initial_delay_seconds: Type.Number({
    minimum: 0,
    maximum: bounds.config_retry_delay_seconds,
    description: 'Delay before the first retry; doubled each time. Default: 0.5.',
  }),
  max_delay_seconds: Type.Number({
    minimum: 0,
    maximum: bounds.config_retry_delay_seconds,
    description: 'Longest delay. Default: 30.',
  }),
}
const retryText = 'Retries of model calls, if the provider does not say how long to wait.'
const retry = Type.Object(optional(retryMembers), { additionalProperties: true, description: retryText })
const retryPatch = Type.Object(optional(nullable(retryMembers)), {
  additionalProperties: true,
  description: `${retryText} Merged member by member; null removes a member.`,
})

const contextMembers = {
  compact_at_tokens: Type.Integer({
    minimum: 1,
    maximum: bounds.config_max_tokens,
    description: `Tokens at which a conversation is compacted. Default: ${contextDefaults.compact_at_percent} % of the model's context window.`,
  }),
  keep_last_steps: Type.Integer({
    minimum: 1,
    maximum: bounds.config_keep_last_steps,
    description: `Number of last steps that are kept unchanged. Default: ${contextDefaults.keep_last_steps}.`,
  }),
  model: { ...model, description: 'The model that writes the summary. Default: the model of the task.' },
}
const contextText = 'Compaction: when a summary replaces the earlier part of a long conversation.'
const context = Type.Object(optional(contextMembers), { additionalProperties: true, description: contextText })
const contextPatch = Type.Object(optional(nullable(contextMembers)), {
  additionalProperties: true,
  description: `${contextText} Merged member by member; null removes a member.`,
})

/** A JSON Schema as a value. The service compiles it when it is set: see `schemaError`. */
export const DataSchema = (description: string) =>
  Type.Unsafe<Record<string, unknown>>(
    boundedJson(
      {
        type: 'object',
        additionalProperties: true,
        'x-verbatim': true,
        description: `${description} JSON Schema 2020-12 of type \`object\`, without references to other documents.`,
      },
      bounds.data_schema_bytes,
    ),
  )

const policiesText =
  'Policies by tool name: `auto` runs the tool, `ask` waits for an approval, `deny` refuses the call.'
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
  instructions: Type.Boolean({ description: 'Whether requests may add instructions. Default: true.' }),
  overrides: Type.Array(Choice(['temperature', 'reasoning']), {
    maxItems: 2,
    description:
      'Settings of the agent that requests may override: `temperature`, and with `reasoning` the effort. Default: none.',
  }),
  progress: Choice(['reasoning_content'], {
    description: 'Member of chat responses that shows tool calls of the service.',
  }),
  show_tool_output: Type.Boolean({
    description: 'Whether responses contain results of tools. Default: true.',
  }),
}
const published = Type.Boolean({ description: 'Whether the protocol serves the agent. Default: false.' })
const mcpDoor = {
  published,
  wait_seconds: Type.Integer({
    minimum: 0,
    maximum: bounds.door_wait_seconds,
    description: 'Seconds that a call waits for its task before it returns a handle. Default: 50.',
  }),
  on_close: Choice(['cancel', 'continue'], {
    description:
      'What happens to a task if the caller closes the connection before it gets a handle. Default: `cancel`.',
  }),
}
const a2aDoor = { published, v0_3: Type.Boolean({ description: 'Whether to serve clients of version 0.3.' }) }
const aguiDoor = {
  published,
  context: Type.Boolean({ description: 'Whether the model gets the context and state that the client sends.' }),
}
const doorsText = 'Protocols that serve the agent, with their settings.'
const openaiText = 'The OpenAI protocol at /v1. Default: true.'
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
  { ...open, description: `${doorsText} Merged member by member; null removes a member.` },
)

const Delegate = Type.Object({
  agent_id: Type.String({ minLength: 1, maxLength: 100, description: 'An agent of the same project.' }),
  version: Type.Optional(
    Type.Integer({ minimum: 0, maximum: bounds.offset, description: 'Version of that agent. Default: the newest.' }),
  ),
  name: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: bounds.tool_name - 'delegate_'.length,
      pattern: '^[A-Za-z0-9_-]*$',
      description: "Last part of the tool's name. Default: derived from the agent's name.",
    }),
  ),
  description: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: bounds.tool_description,
      description: "Description for the model. Default: the agent's description.",
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
  kind: Choice(['remote'] as const, { description: '`remote`: your own workers run the tasks.' }),
  queue: QueueName,
}
const runtimeText =
  'Where the tasks run. By default the service runs them; with `remote`, your own workers claim them from a queue.'

const configMembers = {
  model: Type.Optional(model),
  temperature: Type.Optional(Type.Number({ minimum: 0, maximum: bounds.config_temperature })),
  max_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: bounds.config_max_tokens,
      description: `Maximum tokens of one model response, including reasoning. Default: ${maxTokensDefault.plain}, or ${maxTokensDefault.reasoning} if the model reasons.`,
    }),
  ),
  effort: Type.Optional(
    Choice(efforts, {
      description: 'How much the model reasons. A level that the model lacks is mapped to the nearest one.',
    }),
  ),
  service_tier: Type.Optional(
    Choice(serviceTiers, { description: 'Service tier of the provider. Ignored if the provider does not have it.' }),
  ),
  prompt_cache: Type.Optional(
    Choice(promptCaches, { description: 'Prompt caching by the provider. Default: `auto`.' }),
  ),
  context: Type.Optional(context),
  input_schema: Type.Optional(DataSchema('Schema of the `input` of a task, which must then be an object.')),
  output_schema: Type.Optional(DataSchema('Schema of `output.data` of a task.')),
  tools: Type.Optional(Type.Array(toolName, { maxItems: bounds.config_tools })),
  system_prompt: Type.Optional(Type.String({ maxLength: bounds.config_system_prompt })),
  fallback_models: Type.Optional(
    Type.Array(model, {
      maxItems: bounds.config_fallback_models,
      description: 'Models that are used in this order after `model` fails permanently.',
    }),
  ),
  max_steps: Type.Optional(
    Type.Integer({ minimum: 1, maximum: bounds.config_steps, description: 'Maximum number of steps of one task.' }),
  ),
  timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: bounds.config_timeout_seconds,
      description: 'Maximum duration of one task in seconds.',
    }),
  ),
  max_concurrent_tasks: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: bounds.config_concurrent_tasks,
      description: 'Maximum number of tasks of the agent that run at the same time.',
    }),
  ),
  tool_policies: Type.Optional(policies(policy, policiesText)),
  approval_timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 60,
      maximum: bounds.config_approval_timeout_seconds,
      description: 'Seconds that an approval waits for a decision. Default: 7 days.',
    }),
  ),
  approval_on_timeout: Type.Optional(
    Choice(approvalTimeouts, {
      description: 'What happens after that time: the call is rejected, or the task is canceled. Default: rejected.',
    }),
  ),
  retry: Type.Optional(retry),
  budget: Type.Optional(configBudget),
  delegates: Type.Optional(
    Type.Array(Delegate, {
      maxItems: bounds.config_delegates,
      description: 'Agents of the project that this agent may give tasks to. Each is a tool `delegate_<name>`.',
    }),
  ),
  max_depth: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: bounds.config_max_depth,
      description: `How many levels deep tasks may be delegated, counted from the root task. Default: ${bounds.config_max_depth_default}.`,
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
    propertyNames: {
      pattern: environmentKey,
      description: 'Letters, digits and _, at most 128; no digit at the start.',
    },
    'x-secret': true,
    description: 'Stored encrypted. Names consist of letters, digits and _.',
  })

const bounded = { additionalProperties: true, 'x-max-json-bytes': bounds.config_bytes }

/** Configuration of an agent in a request. Unknown members are stored and returned (decision D14). */
export const AgentConfigInput = Named(
  'AgentConfigInput',
  Type.Object(
    { ...configMembers, environment_variables: Type.Optional(environment<string>(environmentValue)) },
    bounded,
  ),
)

/** The same members, each of which an update may omit or remove by null, also within merged members. */
const nullableMembers = {
  ...optional(nullable(configMembers)),
  tool_policies: Type.Optional(Nullable(policies(Nullable(policy), `${policiesText} Merged by name: null removes.`))),
  retry: Type.Optional(Nullable(retryPatch)),
  context: Type.Optional(Nullable(contextPatch)),
  doors: Type.Optional(Nullable(doorsPatch)),
}

/** An update of the configuration as a JSON Merge Patch; null removes a member (decision D37). */
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

/** Configuration of an agent in a response. */
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
  description: 'Free-form members. The service sets `created_by` and `version`.',
}
/** Free-form members that the caller sets. */
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

/** Statistics in the response of `getAgent` (spec 2.2, decision D42). */
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

/** An agent for examples in the OpenAPI document. */
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
/** Members that operations on one agent share. */
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
    'Agents of a project, newest first by default. `config` does not contain `system_prompt` and `environment_variables`.',
  scope: 'agents:read',
  bucket: 'agents.list',
  query: offsetQuery({
    status: Type.Optional(Choice(agentStates, { description: 'Only agents in this state.' })),
    search: Type.Optional(
      Type.String({
        maxLength: bounds.search,
        description: 'Part of the name or the description. Case-insensitive.',
      }),
    ),
    model: Type.Optional(
      Type.String({ minLength: 1, maxLength: bounds.config_model, description: 'Only agents with this model.' }),
    ),
    tag: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.agent_tag,
        description: 'Only agents whose list `metadata.tags` contains it.',
      }),
    ),
    sort: Defaulted(
      Choice(['created_at', '-created_at', 'name', '-name'], {
        default: '-created_at',
        description: 'Sort order; a minus means descending.',
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
    'Creates an agent with status `creating`. The agent runs as soon as it is provisioned, normally within a second. Only `name` is required.',
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
  description: 'The agent with statistics over all of its tasks.',
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
    '`config` and `metadata` are merged as JSON Merge Patch (RFC 7396): given members replace, absent members stay, `null` removes. `config.input_schema` and `config.output_schema` are replaced whole. The status is then `updating`; the agent returns to its previous state, normally within a second. Existing tasks keep the version that they were created with.',
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
  description:
    'Cancels its tasks, then deletes the agent with its tasks, logs and metrics. Its name can be used again immediately.',
  scope: 'agents:write',
  bucket: 'agents.delete',
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The agent is deleted.',
      schema: Confirmation({ agent_id: Type.String() }),
      example: { message: 'Agent deleted', agent_id: agentExample.id },
    },
  ],
  problems: ['project_not_found', 'agent_not_found'],
})

const actionTexts = {
  start: 'Starts a paused or stopped agent; its waiting and queued tasks continue.',
  pause: 'The current step of each task ends, and no further step starts. New tasks are accepted and queued.',
  stop: 'Running model calls are aborted; running tool calls have 30 seconds to end. Tasks wait after their last finished step; new tasks are refused.',
  restart: 'Stops the agent, then starts it. Allowed in any state.',
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
    description: `${actionTexts[verb]} If the agent is already in that state, the response is the same and nothing changes.`,
    scope: 'agents:write',
    bucket: 'agents.action',
    revisioned: true,
    responses: [
      {
        status: 200,
        description: 'The new state of the agent.',
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
    'Creates an agent with this name and defaults, and starts it. If the agent exists, it is started or restarted; if it runs, nothing changes.',
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
      description: 'The agent was created and launched.',
      schema: Confirmation({}),
      example: { message: "Agent 'support' launched in project 42" },
    },
    {
      status: 200,
      description: 'The agent existed and runs.',
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
