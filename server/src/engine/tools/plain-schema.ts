import { isObject } from '#contract/core/merge-patch.ts'

/** Keywords that one look at a value or its length checks, and those without constraints. */
const plainWords = new Set([
  ...['type', 'required', 'minLength', 'maxLength', 'minimum', 'maximum', 'minItems', 'maxItems'],
  ...['title', 'description', 'default', 'examples', '$schema'],
])

/**
 * Whether a schema only has keywords that look at every part of a value once: no patterns, formats, references,
 * alternatives or comparisons of items. Validation with it takes no longer than parsing the value.
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
