import { isObject } from '#contract/core/merge-patch.ts'

/** Members that hold what the caller chose, where a name is not one of the protocol's. */
const free = new Set(['metadata', 'data'])

/** Names of the protocol's members as JSON has them: a reader of ProtoJSON also takes them as the schema has them (`task_id`). */
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
