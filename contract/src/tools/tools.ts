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

/** Methods that a tool of kind http may have. */
export const toolMethods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Names that the service's own tools have: no tool of a project may have one. */
export const builtinTools = [
  'http_request',
  'run_javascript',
  'read_file',
  'save_file',
  'current_time',
  'wait',
  'request_input',
] as const

/** Whether a name of `config.tools` is that of a built-in tool. */
export function isBuiltinTool(name: string): boolean {
  return (builtinTools as readonly string[]).includes(name)
}

export const toolNameText = Type.String({
  minLength: 1,
  maxLength: bounds.tool_name,
  pattern: '^[A-Za-z][A-Za-z0-9_-]*$',
  description: 'Letters, digits, _ and -; begins with a letter. Unique in the project.',
})
const description = Type.String({
  minLength: 1,
  maxLength: bounds.tool_description,
  description: 'Description for models.',
})
/** The schema of a tool's arguments. */
export const toolParameters = Type.Unsafe<Record<string, unknown>>({
  ...boundedJson({ type: 'object', additionalProperties: true }, bounds.tool_parameters_bytes),
  'x-verbatim': true,
  description:
    'JSON Schema of the arguments (2020-12 or draft-07), of type `object`. Only of the kinds `http` and `client`, where there are none if absent; the others bring their own.',
})
export const toolSafety = Choice(toolSafeties, {
  description:
    'What may be done after a crash in the middle of a call: `safe` and `keyed` calls are repeated (`keyed` because the receiver knows the `Idempotency-Key`), for `unsafe` ones a person is asked. GET is `safe` by default, everything else `unsafe`. Of kind `client` it also says what happens when a lease ends without a result: `safe` and `keyed` calls are offered again, for `unsafe` ones a person is asked.',
})
const url = (text: string) =>
  Type.String({ minLength: 1, maxLength: bounds.tool_url, description: `${text} http or https, a public address.` })
const headers = Type.Unsafe<Record<string, string>>({
  type: 'object',
  additionalProperties: { type: 'string', maxLength: bounds.tool_header_value, 'x-secret': true },
  maxProperties: bounds.tool_headers,
  propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$" },
  description: 'Sent with every request. `${credentials.NAME}` and `${env.NAME}` are put in on the way out.',
})

/** The definition of a tool by its kind: what a project's tool is made from. A new kind has its schema here. */
const definitions = {
  http: Named(
    'HttpTool',
    Type.Object({
      method: Choice(toolMethods),
      url: url('`{name}` in path or query takes an argument; the others go to the query (GET, DELETE) or a JSON body.'),
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
          description: 'An OpenAPI 3 document; or `url`.',
        }),
      ),
      url: Type.Optional(url('Where the document is read when the tool is registered.')),
      base_url: Type.Optional(url("Where the API is, in place of the document's first server.")),
      operations: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
          minItems: 1,
          maxItems: bounds.tool_operations,
          description: 'The `operationId`s that become tools; all of them where nothing is said.',
        }),
      ),
      headers: Type.Optional(headers),
    }),
  ),
  mcp: Named(
    'McpTool',
    Type.Object({ url: url('A server that speaks Streamable HTTP.'), headers: Type.Optional(headers) }),
  ),
  // Its members are those of the tool itself.
  client: Type.Object({
    result_schema: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        ...boundedJson({ type: 'object', additionalProperties: true }, bounds.data_schema_bytes),
        'x-verbatim': true,
        description: 'Only of kind `client`: JSON Schema that a result has to fit, of any type.',
      }),
    ),
    timeout_seconds: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: bounds.client_tool_timeout_seconds,
        description: `Only of kind \`client\`: how long a call waits for its result; ${bounds.client_tool_timeout_seconds_default} by default. Then the model reads that it timed out.`,
      }),
    ),
  }),
}

export type ToolKind = keyof typeof definitions
export const toolKinds = Object.keys(definitions) as ToolKind[]

/** Kinds of tools as people know them, and what each is for. */
export const toolKindNames: Record<ToolKind, string> = {
  http: 'HTTP request',
  openapi: 'OpenAPI',
  mcp: 'MCP server',
  client: 'Your process',
}

export const toolKindLeads: Record<ToolKind, string> = {
  http: 'One request to one address. The model fills in the arguments.',
  openapi: 'Operations of an API, read from its OpenAPI document.',
  mcp: 'The tools of a server that speaks the Model Context Protocol.',
  client: 'A function in your own code. Your process claims calls and returns results.',
}

/** The member of a tool that is named like its kind; of `openapi` it has exactly one of `document` and `url`. */
export type ToolDefinition<Kind extends ToolKind> = Type.Static<(typeof definitions)[Kind]>

/** Names of the members that a definition of this kind has. */
export function definitionMembers(kind: ToolKind): readonly string[] {
  return Object.keys(definitions[kind].properties)
}

/** Kinds whose definition is a member of their name. */
export type NestedKind = Exclude<ToolKind, 'client'>
export const nestedKinds = toolKinds.filter((kind): kind is NestedKind => kind !== 'client')

/** Members of a tool of kind `client`, beside those that every tool has. */
export type ClientMembers = ToolDefinition<'client'>

/** One member for each kind but `client`, whose members are the tool's; a tool has those of its kind. */
const optionalDefinitions = {
  ...(Object.fromEntries(nestedKinds.map((kind) => [kind, Type.Optional(definitions[kind])])) as {
    [Kind in NestedKind]: Type.TOptional<(typeof definitions)[Kind]>
  }),
  ...definitions.client.properties,
}

/** A tool on the side of a task's caller, given with the task. */
export const TaskTool = Named(
  'TaskTool',
  Type.Object({
    kind: Type.Optional(Choice(['client'], { description: 'The only kind that a task can bring.' })),
    name: toolNameText,
    description,
    parameters: Type.Optional(toolParameters),
    strict: Type.Optional(
      Type.Boolean({ description: 'Taken for clients that send it: arguments always have to fit `parameters`.' }),
    ),
    safety: Type.Optional(toolSafety),
    ...definitions.client.properties,
  }),
)

/** Members of a tool that are made from its kind's definition, for requests. */
export const toolDefinitionMembers = optionalDefinitions

const PinnedTool = Named(
  'PinnedTool',
  Type.Object({
    name: Type.String({ description: 'As agents name it: `server/tool`.' }),
    description: Type.String(),
    parameters: FreeObject,
    safety: Choice(toolSafeties),
  }),
)

/** Whether what a server offers is still what was approved. */
export const toolStates = ['active', 'drifted'] as const

const listed = {
  id: Type.String(),
  project_id: Type.String({ description: "`proj_` and the project's number." }),
  name: Type.String(),
  description: Type.String(),
  kind: Choice(toolKinds),
  safety: Nullable(Choice(toolSafeties)),
  status: Choice(toolStates, {
    description: '`drifted`: the server says something else than was registered; see `approveTool`.',
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
      Type.Array(PinnedTool, { description: 'Kinds `openapi` and `mcp`: what was found at registration.' }),
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
    'Gives agents of the project something to call: they name it in `config.tools`. The member named like the `kind` says how; of kind `client` your own process makes the call (see `claimToolCall`). Of `openapi` and `mcp` the document or the server is asked at once, and what it says is pinned. Ignores `Idempotency-Key`: a name is registered once.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  // It waits for other systems, which nothing may in the transaction that keeps an answer.
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
  description: 'Tools that were registered in the project, newest first, without what they are made from.',
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
  description: 'One tool of the project, with the placeholders of its secrets as they were given.',
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
    'Given members replace, missing ones stay; the kind cannot change. Of `openapi` and `mcp`, giving that member asks the document or the server again and pins what it says, which approves it. Tasks that run take it up with their next claim.',
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
    'Asks the server or the document again and pins what it says now: agents may call it from their next task on. `fingerprint` is the one of the `drift` that was read; where the server says something else by now, nothing is approved (409). A tool of kind `http` or `client` has nothing to approve, and is answered as it is.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  // As with createTool, other systems are waited for.
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
  description: 'Agents that name it go on without it, with a warning in their log.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The tool is gone. Its name is free at once.',
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
