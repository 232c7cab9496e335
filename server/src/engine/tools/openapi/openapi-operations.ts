import { createHash } from 'node:crypto'
import { isObject } from '#contract/core/merge-patch.ts'
import { bounds } from '#contract/core/limits.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import { canonicalJson } from '../call-hash.ts'
import { cleanValue } from '../../../platform/clean-text.ts'
import { type OperationArguments, operationArguments } from './openapi-arguments.ts'
import { Resolver, TooLarge } from './openapi-schema.ts'
import { objectSchemaExcess } from '../schemas/schema-bounds.ts'
import type { PinnedTool } from '../tool-rows.ts'
import { parseUrlTemplate } from '../http/url-template.ts'

/** What a call of an operation needs; stored as `facts` of its pinned tool. */
export interface OperationFacts extends Omit<OperationArguments, 'parameters'> {
  method: string
  /** Scheme, host and path, with `{name}` for path parameters. */
  url: string
}

/** An operation of a document. */
export interface FoundOperation {
  /** Its `operationId`, else its method and path. */
  id: string
  method: string
  path: string
  item: Record<string, unknown>
  operation: Record<string, unknown>
}

const methods = ['get', 'head', 'post', 'put', 'patch', 'delete'] as const

/** The operations of a document, each id once, in the document's order. */
export function findOperations(document: Record<string, unknown>): FoundOperation[] {
  const resolver = new Resolver(document)
  const found = new Map<string, FoundOperation>()
  for (const [path, value] of Object.entries(isObject(document.paths) ? document.paths : {})) {
    const item = resolver.deref(value)
    if (!item || !path.startsWith('/')) continue
    for (const method of methods) {
      const operation = resolver.deref(item[method])
      if (!operation) continue
      const id = typeof operation.operationId === 'string' ? operation.operationId : `${method}${path}`
      if (!found.has(id)) found.set(id, { id, method: method.toUpperCase(), path, item, operation })
    }
  }
  return [...found.values()]
}

/** What all operations of a tool have in common. */
export interface OperationContext {
  document: Record<string, unknown>
  /** The address of the API, which overrides the document's. */
  base_url: string | undefined
  /** The URL of the document, the base of its relative addresses. */
  document_url: string | undefined
  /** Headers that the tool sets, lowercase. */
  fixed: ReadonlySet<string>
  safety: ToolSafety | null
}

/** An operation as a tool, or a sentence why it cannot be one. */
export function operationTool(context: OperationContext, found: FoundOperation): PinnedTool | string {
  const { method, path, item, operation } = found
  const base = baseOf(context, item, operation)
  if (base === undefined)
    return 'its address is unknown: the document names no server with an absolute URL, so set base_url'
  const url = `${base}${path}`
  const template = parseUrlTemplate(url)
  if (typeof template === 'string') return `its URL ${template}`
  const described = argumentsOf(context, item, operation)
  if (typeof described === 'string') return described
  const { places, body } = described
  const inPath = new Set(places.filter((place) => place.in === 'path').map(({ name }) => name))
  if (template.names.some((name) => !inPath.has(name))) return 'its path has a parameter that is not described'

  const parameters = cleanValue(described.parameters) as Record<string, unknown>
  const excess = objectSchemaExcess(parameters)
  if (excess) return `its schema ${excess}`
  const name = toolName(found.id)
  const description = descriptionOf(found)
  const facts: OperationFacts = { method, url, places, body }
  const definition = cleanValue({ name, description, parameters, facts })
  return {
    ...(definition as {
      name: string
      description: string
      parameters: Record<string, unknown>
      facts: Record<string, unknown>
    }),
    safety: context.safety ?? (method === 'GET' || method === 'HEAD' ? 'safe' : 'unsafe'),
    fingerprint: createHash('sha256').update(canonicalJson(definition)).digest('hex'),
  }
}

function argumentsOf(
  { document, fixed }: OperationContext,
  item: Record<string, unknown>,
  operation: Record<string, unknown>,
): OperationArguments | string {
  try {
    return operationArguments(new Resolver(document), item, operation, fixed)
  } catch (error) {
    if (error instanceof TooLarge) return error.message
    throw error
  }
}

/**
 * The base URL of an operation, without a trailing slash: the first server of the operation, its path, or the document.
 */
function baseOf(
  { document, base_url, document_url }: OperationContext,
  item: Record<string, unknown>,
  operation: Record<string, unknown>,
): string | undefined {
  const servers = [operation.servers, item.servers, document.servers].find(
    (list) => Array.isArray(list) && list.length > 0,
  )
  const [server] = Array.isArray(servers) ? (servers as unknown[]) : []
  const said = isObject(server) && typeof server.url === 'string' ? withDefaults(server.url, server.variables) : '/'
  const url = URL.parse(base_url ?? said, document_url)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.username !== '') return undefined
  return `${url.origin}${url.pathname.replace(/(?<!\/)\/+$/, '')}`
}

function withDefaults(url: string, variables: unknown): string {
  return url.replaceAll(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = isObject(variables) && Object.hasOwn(variables, name) ? variables[name] : undefined
    return isObject(variable) && typeof variable.default === 'string' ? variable.default : whole
  })
}

/** An operation's id as a part of a tool's name. */
export function toolName(id: string): string {
  return (
    id
      .replaceAll(/[^A-Za-z0-9_-]+/g, '_')
      .replaceAll(/^_+|(?<!_)_+$/g, '')
      .slice(0, bounds.tool_name) || '_'
  )
}

function descriptionOf({ method, path, operation }: FoundOperation): string {
  const { summary, description } = operation
  const texts = [summary, description].filter((text) => typeof text === 'string' && text.trim() !== '')
  return (texts.length > 0 ? [...new Set(texts)].join('\n\n') : `${method} ${path}`).slice(0, bounds.tool_description)
}
