import { isObject } from '#contract/core/merge-patch.ts'

/** Members with free-form content, whose names do not belong to the protocol. */
const free = new Set(['metadata', 'data'])

/**
 * Converts member names to camel case, because a reader of ProtoJSON also accepts the names of the schema
 * (`task_id`).
 */
export function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replaceAll(/(?<=[a-z])_([a-z])/g, (_all, letter: string) => letter.toUpperCase()),
      free.has(name) ? member : camelCased(member),
    ]),
  )
}
