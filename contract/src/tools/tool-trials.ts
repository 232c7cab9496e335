import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { boundedJson, Choice, FreeObject, Named, Nullable, projectParameter } from '../core/schemas.ts'
import { toolSafeties } from '../tasks/task-lifecycle.ts'
import { toolDefinitionMembers, toolKinds, toolNameText, toolParameters, toolSafety } from './tools.ts'

/** Bounds of a trial call and its response. */
export const toolTrialBounds = { arguments_bytes: 65_536, call_seconds: 60, shown_characters: 20_000 } as const

/** Name of a tool whose definition has no name yet. */
export const unnamedTool = 'tool'

const common = {
  error_format: 'agents',
  tag: 'Tools',
  credentials: anyCredential,
  extension: true,
  params: { project_id: projectParameter },
  scope: 'agents:write',
  bucket: 'tasks.action',
  method: 'POST',
  // It waits for other systems, which is not allowed in the transaction that stores an idempotent response.
  idempotent: false,
} as const

const definition = {
  name: Type.Optional(toolNameText),
  kind: Choice(toolKinds),
  safety: Type.Optional(toolSafety),
  parameters: Type.Optional(toolParameters),
  ...toolDefinitionMembers,
}

export const previewTool = defineOperation({
  ...common,
  id: 'previewTool',
  audit: 'project.tool_previewed',
  command: 'tools preview',
  sdk: 'tools.preview',
  path: '/api/v1/projects/{project_id}/tools/preview',
  summary: 'Preview the tools of a server or document',
  description:
    'Lists the tools of the MCP server or the operations of the OpenAPI document, and registers nothing. An operation that cannot be a tool has a `problem`. Use the operation ids for `openapi.operations`. Only for the kinds `openapi` and `mcp`.',
  body: Type.Object(definition),
  body_example: {
    kind: 'openapi',
    openapi: {
      document: {
        openapi: '3.1.0',
        servers: [{ url: 'https://api.example.com' }],
        paths: { '/pets': { get: { operationId: 'listPets', summary: 'List pets' } } },
      },
    },
  },
  responses: [
    {
      status: 200,
      description: 'The tools, in the order of the server or document.',
      schema: Named(
        'ToolPreview',
        Type.Object({
          tools: Type.Array(
            Type.Object({
              name: Type.String({ description: 'The part of the tool name after the slash.' }),
              description: Type.String(),
              safety: Choice(toolSafeties),
              parameters: FreeObject,
              operation: Nullable(
                Type.Object(
                  {
                    id: Type.String({ description: 'The id for `openapi.operations`.' }),
                    method: Type.String(),
                    path: Type.String(),
                  },
                  { description: 'Only for kind `openapi`.' },
                ),
              ),
              problem: Nullable(Type.String({ description: 'Why the operation cannot be a tool; null if it can.' })),
            }),
          ),
        }),
      ),
      example: {
        tools: [
          {
            name: 'listPets',
            description: 'List pets',
            safety: 'safe',
            parameters: { type: 'object', properties: {} },
            operation: { id: 'listPets', method: 'GET', path: '/pets' },
            problem: null,
          },
        ],
      },
    },
  ],
  problems: ['project_not_found'],
})

export const tryTool = defineOperation({
  ...common,
  id: 'tryTool',
  audit: 'project.tool_tried',
  command: 'tools try',
  sdk: 'tools.try',
  path: '/api/v1/projects/{project_id}/tools/try',
  summary: 'Try a tool',
  description: `Makes one real call of a tool, registered or not, and returns request and response without secrets. The call has the same effects as a call of an agent. It takes up to ${toolTrialBounds.call_seconds} seconds. Not for the kind \`client\`, whose calls your own processes make.`,
  body: Type.Object({
    ...definition,
    tool: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.tool_name,
        description: 'For the kinds `openapi` and `mcp`: the tool to call, by the part of its name after the slash.',
      }),
    ),
    arguments: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        ...boundedJson({ type: 'object', additionalProperties: true }, toolTrialBounds.arguments_bytes),
        'x-verbatim': true,
        description: 'Arguments of the call.',
      }),
    ),
    environment_variables: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        additionalProperties: { type: 'string', maxLength: bounds.config_environment_value, 'x-secret': true },
        maxProperties: bounds.config_environment_variables,
        description: 'Values of `${env.NAME}` for this call.',
      }),
    ),
  }),
  body_example: {
    kind: 'http',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    http: {
      method: 'GET',
      url: 'https://api.example.com/v1/weather/{city}',
      headers: { Authorization: 'Bearer ${credentials.WEATHER_KEY}' },
    },
    arguments: { city: 'Berlin' },
  },
  responses: [
    {
      status: 200,
      description: 'The result of the call, even if it failed.',
      schema: Named(
        'ToolTrial',
        Type.Object({
          request: Nullable(
            Type.Object(
              {
                method: Type.String(),
                url: Type.String(),
                headers: Type.Unsafe<Record<string, string>>({
                  type: 'object',
                  additionalProperties: { type: 'string' },
                }),
                body: Nullable(Type.String()),
              },
              {
                description:
                  'The request, with `[redacted]` in place of secrets. Null if none was sent, and for kind `mcp`.',
              },
            ),
          ),
          response: Nullable(
            Type.Object(
              {
                status: Type.Integer(),
                headers: Type.Unsafe<Record<string, string>>({
                  type: 'object',
                  additionalProperties: { type: 'string' },
                }),
                body: Type.String({ description: `At most ${toolTrialBounds.shown_characters} characters.` }),
              },
              { description: 'The response. Null if there was none, and for kind `mcp`.' },
            ),
          ),
          content: Nullable(
            Type.String({ description: 'The result as a model would get it; null if the call failed.' }),
          ),
          error: Nullable(Type.Object({ code: Type.String(), message: Type.String() })),
          duration_ms: Type.Integer({ minimum: 0 }),
        }),
      ),
      example: {
        request: {
          method: 'GET',
          url: 'https://api.example.com/v1/weather/Berlin',
          headers: { Authorization: 'Bearer [redacted]' },
          body: null,
        },
        response: { status: 200, headers: { 'content-type': 'application/json' }, body: '{"celsius": 7}' },
        content: '{"celsius": 7}',
        error: null,
        duration_ms: 212,
      },
    },
  ],
  problems: ['project_not_found'],
})

export const toolTrialOperations: Operation[] = [previewTool, tryTool] as Operation[]
