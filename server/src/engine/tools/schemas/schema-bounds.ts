import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'

/** Bounds of a schema of arguments; its maximum bytes are `bounds.tool_parameters_bytes`. */
const levelsMax = 32
const nodesMax = 5000
const patternMax = 512

/** Why a schema must not be compiled, as text that completes "schema …"; undefined if it may be. */
export function schemaExcess(schema: unknown, depthMax = levelsMax): string | undefined {
  if (!isObject(schema)) return 'must be a JSON Schema'
  const bytes = Buffer.byteLength(JSON.stringify(schema))
  if (bytes > bounds.tool_parameters_bytes) return `must have at most ${bounds.tool_parameters_bytes} bytes as JSON`
  let nodes = 0
  const open: { value: unknown; depth: number }[] = [{ value: schema, depth: 0 }]
  let next
  while ((next = open.pop())) {
    const { value, depth } = next
    if (typeof value !== 'object' || value === null) continue
    if (depth > depthMax) return `must not be nested deeper than ${depthMax} levels`
    if (++nodes > nodesMax) return `must not have more than ${nodesMax} parts`
    const fault = Array.isArray(value) ? undefined : keywordError(value as Record<string, unknown>)
    if (fault !== undefined) return fault
    for (const member of Object.values(value)) open.push({ value: member, depth: depth + 1 })
  }
  return undefined
}

/** The same for a schema that must be of type object, like that of a tool's parameters. */
export function objectSchemaExcess(schema: unknown, depthMax = levelsMax): string | undefined {
  if (!isObject(schema) || schema.type !== 'object') return 'must be a JSON Schema of type "object"'
  return schemaExcess(schema, depthMax)
}

function keywordError(schema: Record<string, unknown>): string | undefined {
  for (const keyword of ['$ref', '$dynamicRef', '$recursiveRef']) {
    const ref = schema[keyword]
    if (typeof ref === 'string' && !ref.startsWith('#'))
      return `must not refer to other documents (${ref.slice(0, 80)})`
  }
  const { pattern } = schema
  if (typeof pattern === 'string' && pattern.length > patternMax)
    return `must not have a pattern longer than ${patternMax} characters`
  return undefined
}
