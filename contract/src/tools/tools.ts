import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  boundedJson,
  Choice,
  Confirmation,
  FreeObject,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'
import { toolSafeties } from '../tasks/task-lifecycle.ts'

/** HTTP methods of tools of kind `http`. */
export const toolMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Names of the built-in tools. A tool of a project cannot have one of them. */
export const builtinTools = [
  'http_request',
  'run_javascript',
  'read_file',
  'save_file',
  'current_time',
  'wait',
  'request_input',
] as const

/** Whether a name in `config.tools` is a built-in tool. */
export function isBuiltinTool(name: string): boolean {
  return (builtinTools as readonly string[]).includes(name)
}

export const toolNameText = Type.String({
  minLength: 1,
  maxLength: bounds.tool_name,
  pattern: '^[A-Za-z][A-Za-z0-9_-]*$',
  description: 'Letters, digits, _ and -; starts with a letter. Unique in the project.',
})
const description = Type.String({
  minLength: 1,
  maxLength: bounds.tool_description,
  description: 'Description for models.',
})
/** JSON Schema of a tool's arguments. */
export const toolParameters = Type.Unsafe<Record<string, unknown>>({
  ...boundedJson({ type: 'object', additionalProperties: true }, bounds.tool_parameters_bytes),
  'x-verbatim': true,
  description:
    'JSON Schema of the arguments (2020-12 or draft-07), of type `object`. Only for the kinds `http` and `client`, whose tools have no arguments if it is absent; tools of other kinds define their own.',
})
export const toolSafety = Choice(toolSafeties, {
  description:
    'What happens after a crash during a call: `safe` and `keyed` calls are repeated (`keyed` because the receiver supports `Idempotency-Key`); for `unsafe` calls a person is asked. Default: `safe` for GET, otherwise `unsafe`. For kind `client` it also applies if a lease ends without a result: `safe` and `keyed` calls are offered again.',
})
const url = (text: string) =>
  Type.String({
    minLength: 1,
    maxLength: bounds.tool_url,
    description: `${text} An http or https URL with a public address.`,
  })
const headers = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string', maxLength: bounds.tool_header_value, 'x-secret': true },
  maxProperties: bounds.tool_headers,
  propertyNames: {
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$",
    description: 'A name of a header (RFC 9110), of at most 128 characters.',
  },
  description: 'Headers of every request. `${credentials.NAME}` and `${env.NAME}` are replaced when it is sent.',
})

/** Schema of a tool's definition for each kind. Add new kinds here. */
const definitions = {
  http: Named(
    'HttpTool',
    Type.Object({
      method: Choice(toolMethods),
      url: url(
        '`{name}` in path or query is replaced by that argument; other arguments go to the query (GET, DELETE) or a JSON body.',
      ),
      headers: Type.Optional(headers),
      timeout_seconds: Type.Optional(Type.Number({ minimum: 0.1, maximum: bounds.tool_timeout_seconds })),
    }),
  ),
  openapi: Named(
    'OpenApiTool',
    Type.Object({
      document: Type.Optional(
        Type.Unsafe<Record<string, unknown>>({
          type: 'object',
          additionalProperties: true,
          'x-verbatim': true,
          description: 'An OpenAPI 3 document. Give this or `url`.',
        }),
      ),
      url: Type.Optional(url('URL from which the document is read when the tool is registered.')),
      base_url: Type.Optional(url("Base URL of the API. Default: the document's first server.")),
      operations: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
          minItems: 1,
          maxItems: bounds.tool_operations,
          description: 'The `operationId`s that become tools. Default: all.',
        }),
      ),
      headers: Type.Optional(headers),
    }),
  ),
  mcp: Named(
    'McpTool',
    Type.Object({ url: url('An MCP server with Streamable HTTP transport.'), headers: Type.Optional(headers) }),
  ),
  // Members of the tool itself, not of a nested object.
  client: Type.Object({
    result_schema: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        ...boundedJson({ type: 'object', additionalProperties: true }, bounds.data_schema_bytes),
        'x-verbatim': true,
        description: 'Only for kind `client`: JSON Schema of results, of any type.',
      }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: bounds.client_tool_timeout_seconds,
        description: `Only for kind \`client\`: seconds that a call waits for its result. Default: ${bounds.client_tool_timeout_seconds_default}. After that, the model gets a timeout error.`,
      }),
    ),
  }),
}

export type ToolKind = keyof typeof definitions
export const toolKinds = Object.keys(definitions) as ToolKind[]

/** Display name of each kind of tool. */
export const toolKindNames: Record<ToolKind, string> = {
  http: 'HTTP request',
  openapi: 'OpenAPI',
  mcp: 'MCP server',
  client: 'Your process',
}

export const toolKindLeads: Record<ToolKind, string> = {
  http: 'One request to one address. The model fills in the arguments.',
  openapi: 'Operations of an API, read from its OpenAPI document.',
  mcp: 'The tools of a server with the Model Context Protocol.',
  client: 'A function in your own code. Your process claims calls and returns results.',
}

/** The definition of a kind. For `openapi` it has exactly one of `document` and `url`. */
export type ToolDefinition<Kind extends ToolKind> = Type.Static<(typeof definitions)[Kind]>

/** Names of the members of this kind's definition. */
export function definitionMembers(kind: ToolKind): readonly string[] {
  return Object.keys(definitions[kind].properties)
}

/** Kinds whose definition is a nested object with the name of the kind. */
export type NestedKind = Exclude<ToolKind, 'client'>
export const nestedKinds = toolKinds.filter((kind): kind is NestedKind => kind !== 'client')

/** Members of a tool of kind `client` in addition to those of every tool. */
export type ClientMembers = ToolDefinition<'client'>

/** The definitions of all kinds as optional members; a tool has those of its kind. */
const optionalDefinitions = {
  ...(Object.fromEntries(nestedKinds.map((kind) => [kind, Type.Optional(definitions[kind])])) as {
    [Kind in NestedKind]: Type.TOptional<(typeof definitions)[Kind]>
  }),
  ...definitions.client.properties,
}

/** A client tool that a request gives its task. */
export const TaskTool = Named(
  'TaskTool',
  Type.Object({
    kind: Type.Optional(Choice(['client'], { description: 'The only kind that is allowed here.' })),
    name: toolNameText,
    description,
    parameters: Type.Optional(toolParameters),
    strict: Type.Optional(
      Type.Boolean({ description: 'Accepted for compatibility. Arguments must always match `parameters`.' }),
    ),
    safety: Type.Optional(toolSafety),
    ...definitions.client.properties,
  }),
)

/** The definitions of all kinds as optional members of a request. */
export const toolDefinitionMembers = optionalDefinitions

const PinnedTool = Named(
  'PinnedTool',
  Type.Object({
    name: Type.String({ description: 'Name in `config.tools`: `server/tool`.' }),
    description: Type.String(),
    parameters: FreeObject,
    safety: Choice(toolSafeties),
  }),
)

/** States of a tool: whether the server still has the approved definitions. */
export const toolStates = ['active', 'drifted'] as const

const listed = {
  id: Type.String(),
  project_id: Type.String({ description: "`proj_` and the project's number." }),
  name: Type.String(),
  description: Type.String(),
  kind: Choice(toolKinds),
  safety: Nullable(Choice(toolSafeties)),
  status: Choice(toolStates, {
    description: '`drifted`: the definitions of the server differ from the registered ones; see `approveTool`.',
  }),
  created_by: Type.String(),
  created_at: Timestamp,
  updated_at: Timestamp,
}
const ListedTool = Named('ListedTool', Type.Object(listed))
const Tool = Named(
  'Tool',
  Type.Object({
    ...listed,
    parameters: Nullable(FreeObject),
    ...optionalDefinitions,
    tools: Type.Optional(
      Type.Array(PinnedTool, {
        description: 'For the kinds `openapi` and `mcp`: the tools that were found at the registration.',
      }),
    ),
    drift: Nullable(FreeObject),
  }),
)

const bodyExample = {
  name: 'weather',
  description: 'The weather in a city.',
  kind: 'http',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1, maximum: 7 } },
    required: ['city'],
  },
  http: {
    method: 'GET',
    url: 'https://api.example.com/v1/weather/{city}',
    headers: { Authorization: 'Bearer ${credentials.WEATHER_KEY}' },
  },
} as const
const { parameters: _parameters, http: _http, ...listedBody } = bodyExample
const exampleFacts = {
  id: 'tool_01jcm3x5v8f9a2b4c6d8e0g2h4',
  project_id: 'proj_42',
  safety: 'safe',
  status: 'active',
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}
const example = { ...exampleFacts, ...bodyExample, drift: null }

const common = { error_format: 'agents', tag: 'Tools', credentials: anyCredential, extension: true } as const
const ofProject = {
  ...common,
  path: '/api/v1/projects/{project_id}/tools',
  params: { project_id: projectParameter },
} as const
const one = {
  ...common,
  path: '/api/v1/projects/{project_id}/tools/{tool_id}',
  params: { project_id: projectParameter, tool_id: { description: 'The tool.', example: exampleFacts.id } },
} as const

export const createTool = defineOperation({
  ...ofProject,
  id: 'createTool',
  audit: 'tool.created',
  command: 'tools create',
  sdk: 'tools.create',
  method: 'POST',
  summary: 'Register a tool',
  description:
    "Registers a tool for the project's agents, which list it in `config.tools`. The member with the name of the `kind` defines the call; for kind `client`, your own process makes it (see `claimToolCall`). For `openapi` and `mcp`, the document or server is read immediately and its definitions are pinned. `Idempotency-Key` is ignored, because names are unique.",
  scope: 'agents:write',
  bucket: 'tasks.action',
  // It waits for other systems, which is not allowed in the transaction that stores an idempotent response.
  idempotent: false,
  body: Type.Object({
    name: toolNameText,
    description,
    kind: Choice(toolKinds),
    safety: Type.Optional(toolSafety),
    parameters: Type.Optional(toolParameters),
    ...optionalDefinitions,
  }),
  body_example: bodyExample,
  responses: [{ status: 201, description: 'The tool.', schema: Tool, example }],
  problems: ['project_not_found', 'resource_conflict'],
})

export const listTools = defineOperation({
  ...ofProject,
  id: 'listTools',
  command: 'tools list',
  sdk: 'tools.list',
  method: 'GET',
  summary: 'List tools',
  description: 'Tools of the project, newest first, without their definitions.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    kind: Type.Optional(Choice(toolKinds, { description: 'Only tools of this kind.' })),
    status: Type.Optional(Choice(toolStates, { description: 'Only tools in this state.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of tools.',
      schema: Named('ToolList', Type.Object({ tools: Type.Array(ListedTool), pagination: OffsetPagination })),
      example: { tools: [{ ...exampleFacts, ...listedBody }], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getTool = defineOperation({
  ...one,
  id: 'getTool',
  command: 'tools get',
  sdk: 'tools.get',
  method: 'GET',
  summary: 'Read a tool',
  description: 'A tool of the project with its definition. Placeholders of secrets are not replaced.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The tool.', schema: Tool, example }],
  problems: ['project_not_found', 'tool_not_found'],
})

export const updateTool = defineOperation({
  ...one,
  id: 'updateTool',
  audit: 'tool.updated',
  command: 'tools update',
  sdk: 'tools.update',
  method: 'PUT',
  summary: 'Update a tool',
  description:
    'Given members replace, absent members stay; the kind cannot change. For `openapi` and `mcp`, giving that member reads the document or server again, pins its definitions and so approves them. Running tasks use the new definition from their next claim on.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    name: Type.Optional(toolNameText),
    description: Type.Optional(description),
    kind: Type.Optional(Choice(toolKinds)),
    safety: Type.Optional(toolSafety),
    parameters: Type.Optional(toolParameters),
    ...optionalDefinitions,
  }),
  body_example: { description: 'The weather in a city, for up to a week.' },
  responses: [
    {
      status: 200,
      description: 'The tool.',
      schema: Tool,
      example: { ...example, description: 'The weather in a city, for up to a week.' },
    },
  ],
  problems: ['project_not_found', 'tool_not_found', 'resource_conflict'],
})

export const approveTool = defineOperation({
  ...one,
  id: 'approveTool',
  audit: 'tool.approved',
  command: 'tools approve',
  sdk: 'tools.approve',
  path: `${one.path}/approve`,
  method: 'POST',
  summary: "Approve a tool's definitions",
  description:
    'Reads the server or document again and pins its current definitions; agents may call them from their next task on. `fingerprint` is that of the `drift` that you read: if the definitions have changed since, nothing is approved (409). A tool of kind `http` or `client` has nothing to approve and is returned unchanged.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  // Like createTool, it waits for other systems.
  idempotent: false,
  body_optional: true,
  body: Type.Object({ fingerprint: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })) }),
  body_example: {},
  responses: [{ status: 200, description: 'The tool.', schema: Tool, example }],
  problems: ['project_not_found', 'tool_not_found', 'resource_conflict'],
})

export const deleteTool = defineOperation({
  ...one,
  id: 'deleteTool',
  audit: 'tool.deleted',
  command: 'tools delete',
  sdk: 'tools.delete',
  method: 'DELETE',
  summary: 'Delete a tool',
  description: 'Agents that list it continue without it, with a warning in their log.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The tool is deleted. Its name can be used again immediately.',
      schema: Confirmation({ tool_id: Type.String() }),
      example: { message: 'Tool deleted', tool_id: example.id },
    },
  ],
  problems: ['project_not_found', 'tool_not_found'],
})

export const toolOperations: Operation[] = [
  createTool,
  listTools,
  getTool,
  updateTool,
  approveTool,
  deleteTool,
] as Operation[]
