import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { boundedJson, Choice, FreeObject, Named, Nullable, projectParameter } from '../core/schemas.ts'
import { toolSafeties } from '../tasks/task-lifecycle.ts'
import { toolDefinitionMembers, toolKinds, toolNameText, toolParameters, toolSafety } from './tools.ts'

/** Bounds of a call by hand, and of what is shown of it. */
export const toolTrialBounds = { arguments_bytes: 65_536, call_seconds: 60, shown_characters: 20_000 } as const

/** Tools that are found behind a definition are named so where it has no name yet. */
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
  // Other systems are waited for, which nothing may in the transaction that keeps an answer.
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
    'Asks the MCP server or the OpenAPI document which tools it has and registers nothing. Of a document all operations are listed, with what keeps one from being a tool: choose from them for `openapi.operations`. Only of the kinds `openapi` and `mcp`.',
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
      description: 'What was found, in its own order.',
      schema: Named(
        'ToolPreview',
        Type.Object({
          tools: Type.Array(
            Type.Object({
              name: Type.String({ description: 'As it is called after the slash.' }),
              description: Type.String(),
              safety: Choice(toolSafeties),
              parameters: FreeObject,
              operation: Nullable(
                Type.Object(
                  {
                    id: Type.String({ description: 'For `openapi.operations`.' }),
                    method: Type.String(),
                    path: Type.String(),
                  },
                  { description: 'Of kind `openapi`.' },
                ),
              ),
              problem: Nullable(Type.String({ description: 'Why it cannot be a tool.' })),
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
  description: `Makes one real call of a tool, registered or not, and shows what was sent and what came back, without secrets. It has every effect that a call of an agent has. At most ${toolTrialBounds.call_seconds} seconds. Not of the kind \`client\`, whose calls your own processes make.`,
  body: Type.Object({
    ...definition,
    tool: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: bounds.tool_name,
        description: 'Of kinds `openapi` and `mcp`: which of its tools, by the name after the slash.',
      }),
    ),
    arguments: Type.Optional(
      Type.Unsafe<Record<string, unknown>>({
        ...boundedJson({ type: 'object', additionalProperties: true }, toolTrialBounds.arguments_bytes),
        'x-verbatim': true,
        description: 'What a model would call it with.',
      }),
    ),
    environment_variables: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        additionalProperties: { type: 'string', maxLength: bounds.config_environment_value, 'x-secret': true },
        maxProperties: bounds.config_environment_variables,
        description: 'What `${env.NAME}` stands for in this call.',
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
      description: 'What became of the call; also of one that failed.',
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
                description: 'What was sent, with `[redacted]` for secrets. Null where nothing was, and of kind `mcp`.',
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
              { description: 'What came back. Null where nothing did, and of kind `mcp`.' },
            ),
          ),
          content: Nullable(Type.String({ description: 'What a model would read; null where the call failed.' })),
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
