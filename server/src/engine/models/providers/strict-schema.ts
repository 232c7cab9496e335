import { isObject } from '#contract/core/merge-patch.ts'

/** Keywords that all such providers enforce, or that have no effect. */
const keywords = new Set([
  ...[
    '$schema',
    'type',
    'title',
    'description',
    'properties',
    'required',
    'additionalProperties',
    'items',
    'enum',
    'const',
  ],
  'anyOf',
])
/** Maximum nesting of objects, and of their members in total, in OpenAI's strict mode. */
const depthMax = 5
const membersMax = 100

/**
 * Whether every provider with strict schemas can enforce a schema: all objects are closed, all their members are
 * required, and it has no other keywords than those that all providers know. The service validates every answer itself,
 * also for other schemas.
 */
export function isStrictSchema(schema: Record<string, unknown>): boolean {
  const count = { members: 0 }
  return schema['anyOf'] === undefined && isStrict(schema, 0, count) && count.members <= membersMax
}

function isStrict(schema: unknown, depth: number, count: { members: number }): boolean {
  if (!isObject(schema) || depth > depthMax || Object.keys(schema).some((word) => !keywords.has(word))) return false
  const { type, properties, required, additionalProperties, items, anyOf } = schema
  const types = Array.isArray(type) ? type : [type]
  if (types.includes('object') || properties !== undefined) {
    if (!isObject(properties) || additionalProperties !== false || !Array.isArray(required)) return false
    const names = Object.keys(properties)
    count.members += names.length
    if (names.some((name) => !required.includes(name)) || required.length !== names.length) return false
    if (!Object.values(properties).every((member) => isStrict(member, depth + 1, count))) return false
  }
  if (types.includes('array') && !isStrict(items, depth + 1, count)) return false
  if (anyOf !== undefined && !(Array.isArray(anyOf) && anyOf.every((one) => isStrict(one, depth + 1, count))))
    return false
  return type !== undefined || anyOf !== undefined || schema['enum'] !== undefined || schema['const'] !== undefined
}
