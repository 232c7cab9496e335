import { isObject } from '#contract/core/merge-patch.ts'

/** Words that are checked by one look at a value or at its length, and those that say nothing about values. */
const plainWords = new Set([
  ...['type', 'required', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'],
  ...['title', 'description', 'default', 'examples', '$schema'],
])

/**
 * Whether a schema has nothing but words by which every part of a value is looked at once: no patterns, formats, references,
 * alternatives or comparisons of items. A check against it takes no longer than parsing the value did.
 */
export function isPlainSchema(schema: unknown): boolean {
  return isObject(schema) && Object.entries(schema).every(([word, value]) => isPlainWord(word, value))
}

function isPlainWord(word: string, value: unknown): boolean {
  if (word === 'properties') return isObject(value) && Object.values(value).every(isPlainSchema)
  if (word === 'items') return isPlainSchema(value)
  if (word === 'additionalProperties') return typeof value === 'boolean'
  if (word === 'enum')
    return Array.isArray(value) && value.length <= 100 && value.every((one) => typeof one === 'string')
  return plainWords.has(word)
}
