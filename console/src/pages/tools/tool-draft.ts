import { isObject } from '#contract/core/merge-patch.ts'
import type { toolMethods, ToolKind } from '#contract/tools/tools.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { NewTool, Tool } from '#sdk/types.ts'
import { readSchema } from '../../agents/schema-text.ts'

/** A tool as its form holds it: texts as they were typed. */
export interface ToolDraft {
  kind: ToolKind
  name: string
  description: string
  safety: ToolSafety | ''
  method: (typeof toolMethods)[number]
  url: string
  headers: readonly (readonly [name: string, value: string])[]
  timeout: string
  parameters: string
  /** Of an OpenAPI document: where it is from. */
  source: 'url' | 'document'
  document: string
  base_url: string
  /** Undefined where all are taken. */
  operations: readonly string[] | undefined
  result_schema: string
}

export const emptyDraft: ToolDraft = {
  kind: 'http',
  name: '',
  description: '',
  safety: '',
  method: 'GET',
  url: '',
  headers: [],
  timeout: '',
  parameters: '',
  source: 'url',
  document: '',
  base_url: '',
  operations: undefined,
  result_schema: '',
}

/** A tool that works with anything that answers JSON, to begin with. */
export const weatherDraft: ToolDraft = {
  ...emptyDraft,
  name: 'weather',
  description: 'The weather at a place, by its coordinates. Use it when a user asks about the weather.',
  url: 'https://api.open-meteo.com/v1/forecast?current=temperature_2m,wind_speed_10m',
  parameters: JSON.stringify(
    {
      type: 'object',
      properties: { latitude: { type: 'number' }, longitude: { type: 'number' } },
      required: ['latitude', 'longitude'],
    },
    undefined,
    2,
  ),
}

/** The draft of a tool that there is. */
export function draftOf(tool: Tool): ToolDraft {
  const { kind, name, description, safety, parameters, http, openapi, mcp, result_schema, timeout_seconds } = tool
  const { headers = {} } = http ?? openapi ?? mcp ?? {}
  const timeout = http?.timeout_seconds ?? timeout_seconds
  return {
    ...emptyDraft,
    kind,
    name,
    description,
    safety: safety ?? '',
    method: http?.method ?? 'GET',
    url: http?.url ?? openapi?.url ?? mcp?.url ?? '',
    headers: Object.entries(headers),
    timeout: timeout === undefined ? '' : String(timeout),
    parameters: asText(parameters),
    source: openapi?.document === undefined ? 'url' : 'document',
    document: asText(openapi?.document),
    base_url: openapi?.base_url ?? '',
    operations: openapi?.operations,
    result_schema: asText(result_schema),
  }
}

function asText(value: unknown): string {
  return value === undefined || value === null ? '' : JSON.stringify(value, undefined, 2)
}

/** The members of a draft that the API takes, or what in it cannot be read, by the field of the API. */
export type ReadDraft = { body: NewTool } | { fault: { field: string; message: string } }

export function readDraft(draft: ToolDraft): ReadDraft {
  const { kind, name, description, safety } = draft
  const named = draft.headers.filter(([header]) => header.trim() !== '')
  const headers = Object.fromEntries(named.map(([header, value]) => [header.trim(), value]))
  const shared = {
    name: name.trim(),
    description: description.trim(),
    kind,
    ...(safety === '' ? {} : { safety }),
  }
  const withHeaders = named.length === 0 ? {} : { headers }
  const url = draft.url.trim()
  if (kind === 'mcp') return { body: { ...shared, mcp: { url, ...withHeaders } } }
  if (kind === 'openapi') {
    const document = draft.source === 'document' ? readDocument(draft.document) : undefined
    if (typeof document === 'string') return { fault: { field: 'openapi.document', message: document } }
    const base_url = draft.base_url.trim()
    const openapi = {
      ...(document ? { document } : { url }),
      ...(base_url === '' ? {} : { base_url }),
      ...(draft.operations === undefined ? {} : { operations: [...draft.operations] }),
      ...withHeaders,
    }
    return { body: { ...shared, openapi } }
  }
  const parameters = readSchema(draft.parameters)
  if ('fault' in parameters) return { fault: { field: 'parameters', message: parameters.fault } }
  const taken = parameters.schema === undefined ? {} : { parameters: parameters.schema }
  const timeout = draft.timeout.trim() === '' ? {} : { timeout_seconds: Number(draft.timeout) }
  if (kind === 'http')
    return { body: { ...shared, ...taken, http: { method: draft.method, url, ...withHeaders, ...timeout } } }
  const result = readSchema(draft.result_schema)
  if ('fault' in result) return { fault: { field: 'result_schema', message: result.fault } }
  return {
    body: { ...shared, ...taken, ...timeout, ...(result.schema === undefined ? {} : { result_schema: result.schema }) },
  }
}

/** The document of a text, or what is wrong with it. */
function readDocument(text: string): Record<string, unknown> | string {
  if (text.trim() === '') return 'Paste the document'
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : 'An OpenAPI document is a JSON object'
  } catch {
    return 'This is not valid JSON. Convert YAML to JSON first'
  }
}

/** Names of environment variables that a definition takes, which only an agent has. */
export function environmentNames(body: NewTool): string[] {
  const names = [...JSON.stringify(body).matchAll(/\$\{env\.([A-Za-z_][A-Za-z0-9_]*)\}/g)]
  return [...new Set(names.map(([, name = '']) => name))]
}
