import { isObject } from '#contract/core/merge-patch.ts'

/** Words that the providers enforce, or that say nothing. */
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
/** Levels of objects, and members of all of them together, that OpenAI takes in its strict mode. */
const depthMax = 5
const membersMax = 100

/**
 * Whether a schema can be enforced by every provider that enforces schemas: all objects are closed and all their members
 * required, and it has no other words than those that all of them know. One that is not is still checked by the service.
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
