import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'

/** A schema that was typed; undefined where nothing was. Or what is wrong with it. */
export type SchemaRead = { schema: Record<string, unknown> | undefined } | { fault: string }

/** Reads a JSON Schema of an object. What else is wrong with it only the service says. */
export function readSchema(text: string): SchemaRead {
  if (text.trim() === '') return { schema: undefined }
  let schema: unknown
  try {
    schema = JSON.parse(text)
  } catch (error) {
    return { fault: notJson(error) }
  }
  if (!isObject(schema)) return { fault: 'A schema is a JSON object: start with { "type": "object" }.' }
  if (schema.type !== 'object') return { fault: 'Set "type" to "object" at the top level.' }
  if (new Blob([JSON.stringify(schema)]).size > bounds.data_schema_bytes)
    return { fault: `A schema can have up to ${bounds.data_schema_bytes / 1024} KiB.` }
  return { schema }
}

export function notJson(error: unknown): string {
  return `This isn’t valid JSON: ${error instanceof Error ? error.message : String(error)}`
}
