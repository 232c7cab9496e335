import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { Problem } from '#contract/core/problems.ts'
import type { ToolDefinition } from '#contract/tools/tools.ts'
import { EgressRefused } from '../../../platform/egress/safe-fetch.ts'
import { toolAnswer } from '../http/http-answer.ts'
import { asToolError, sendToolRequest } from '../http/http-send.ts'
import {
  findOperations,
  type FoundOperation,
  type OperationContext,
  type OperationFacts,
  operationTool,
  toolName,
} from './openapi-operations.ts'
import { operationRequest } from './openapi-request.ts'
import type { OpenedTools, Opening, Pinning } from '../opened.ts'
import { type Tool, ToolError } from '../tool.ts'
import type { PinnedTool, ToolRow } from '../tool-rows.ts'

/** Timeout for reading a document. */
const documentTimeout_ms = 15_000
/** Maximum number of operations of a document that are listed to choose from. */
const previewedMax = 2000

/** The pinned operations of an OpenAPI document as tools, `name/operation`. */
export function openapiTools(row: ToolRow, opening: Opening): OpenedTools {
  return { tools: (row.pinned ?? []).map((pinned) => openapiTool(row, pinned, opening)), missing: [] }
}

function openapiTool(
  row: ToolRow,
  { name, description, parameters, safety, facts }: PinnedTool,
  opening: Opening,
): Tool {
  const { headers = {} } = row.definition as ToolDefinition<'openapi'>
  return {
    name: `${row.name}/${name}`,
    description,
    parameters,
    safety,
    async call(args, context) {
      // `operationTool` made the facts when the row was registered.
      const operation = facts as unknown as OperationFacts
      const filled = Object.fromEntries(
        Object.entries(headers).map(([key, value]) => [key, opening.fill(value, operation.url)]),
      )
      const request = operationRequest(operation, args, filled)
      return toolAnswer(await sendToolRequest(opening.egress, { ...request, isUnsafe: safety === 'unsafe' }, context))
    },
  }
}

/**
 * Reads the document, from its URL if it is not given, and finds the tools: those named by `operations`, or all that
 * can be called. They are pinned: later changes of the document have no effect. All of them are at one origin, which
 * the address rules allow.
 * @throws `validation_error` with the field (`openapi.url`, `openapi.operations[0]`)
 */
export async function pinOpenapi(
  definition: ToolDefinition<'openapi'>,
  { safety }: Pick<ToolRow, 'name' | 'safety'>,
  pinning: Pinning,
): Promise<PinnedTool[]> {
  const source = sourceOf(definition)
  const context = await operationContext(definition, safety, pinning)
  const tools = pick(context, findOperations(context.document), definition.operations, source)
  checkOrigins(tools, pinning, definition.base_url === undefined ? source : 'openapi.base_url')
  return tools
}

/**
 * All operations of the document, each as a tool or with the reason why it cannot be one, so that a person can choose.
 * @throws like `pinOpenapi` if the document cannot be read
 */
export async function previewOpenapi(
  definition: ToolDefinition<'openapi'>,
  { safety }: Pick<ToolRow, 'safety'>,
  pinning: Pinning,
): Promise<{ operation: FoundOperation; tool: PinnedTool | string }[]> {
  const context = await operationContext(definition, safety, pinning)
  const found = findOperations(context.document)
  if (found.length > previewedMax)
    throw invalid(sourceOf(definition), `The document has more than ${previewedMax} operations.`)
  return found.map((operation) => ({ operation, tool: operationTool(context, operation) }))
}

function sourceOf({ url }: ToolDefinition<'openapi'>): string {
  return url === undefined ? 'openapi.document' : 'openapi.url'
}

async function operationContext(
  definition: ToolDefinition<'openapi'>,
  safety: ToolRow['safety'],
  pinning: Pinning,
): Promise<OperationContext> {
  const { document, url } = await readDocument(definition, pinning)
  if (typeof document.openapi !== 'string' || !/^3\.[01]\.\d+/.test(document.openapi)) {
    throw invalid(sourceOf(definition), 'The document must be OpenAPI 3.0 or 3.1.')
  }
  return {
    document,
    base_url: definition.base_url,
    document_url: url,
    fixed: new Set(Object.keys(definition.headers ?? {}).map((name) => name.toLowerCase())),
    safety,
  }
}

async function readDocument(
  { document, url }: ToolDefinition<'openapi'>,
  { egress, fill, signal }: Pinning,
): Promise<{ document: Record<string, unknown>; url?: string }> {
  if (document !== undefined) return { document }
  if (url === undefined) throw invalid('openapi.document', 'Set document or url.')
  const refuse = (message: string): never => {
    throw invalid('openapi.url', message)
  }
  try {
    const answer = await egress.fetch(fill(url, url, encodeURIComponent), {
      purpose: 'tool',
      headers: { accept: 'application/json' },
      timeout_ms: documentTimeout_ms,
      signal,
    })
    if (answer.status !== 200) return refuse(`The document could not be read: status ${answer.status}.`)
    const read: unknown = JSON.parse(answer.body.toString('utf8'))
    return isObject(read) ? { document: read, url: answer.url } : refuse('The document must be a JSON object.')
  } catch (thrown) {
    signal.throwIfAborted()
    const error = asToolError(thrown, false)
    if (error instanceof SyntaxError) return refuse('The document must be JSON.')
    if (error instanceof ToolError) return refuse(error.message)
    throw error
  }
}

function pick(
  context: OperationContext,
  found: FoundOperation[],
  wanted: readonly string[] | undefined,
  source: string,
): PinnedTool[] {
  if (wanted === undefined && found.length > bounds.tool_operations) {
    const message = `The document has ${found.length} operations: name the ones to use, at most ${bounds.tool_operations}.`
    throw invalid('openapi.operations', message)
  }
  const byId = new Map(found.map((operation) => [operation.id, operation]))
  const byName = new Map(found.map((operation) => [toolName(operation.id), operation]))
  const tools = new Map<string, PinnedTool>()
  for (const [i, id] of (wanted ?? found.map((operation) => operation.id)).entries()) {
    const operation = byId.get(id) ?? byName.get(id)
    const tool = operation ? operationTool(context, operation) : 'the document has no such operation'
    if (typeof tool === 'string') {
      // An operation that was not requested by name is left out; an unusable one that was requested is an error.
      if (wanted) throw invalid(`openapi.operations[${i}]`, `${id.slice(0, 100)} cannot be used: ${tool}.`)
      continue
    }
    if (!tools.has(tool.name)) tools.set(tool.name, tool)
  }
  if (tools.size > 0) return [...tools.values()]
  const [first] = found
  const why = first && operationTool(context, first)
  throw invalid(
    source,
    `The document has no operation that could be used${typeof why === 'string' ? `: of ${first?.id.slice(0, 100)}, ${why}` : ''}.`,
  )
}

/** The tool's headers may have secrets, so they are sent to one origin only, which the address rules must allow. */
function checkOrigins(tools: PinnedTool[], { egress }: Pinning, field: string): void {
  const origins = new Set(tools.map(({ facts }) => new URL(String(facts?.url)).origin))
  if (origins.size > 1) {
    throw invalid(
      field,
      `The operations are at more than one server (${[...origins].slice(0, 3).join(', ')}): name those of one.`,
    )
  }
  try {
    for (const origin of origins) egress.check(origin, 'tool')
  } catch (error) {
    if (error instanceof EgressRefused)
      throw invalid(field, `The server of the operations cannot be used: ${error.message}.`)
    throw error
  }
}

function invalid(field: string, message: string): Problem {
  return new Problem('validation_error', [{ field, message, code: 'invalid_format' }])
}
