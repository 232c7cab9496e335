/** PostgreSQL stores neither U+0000 nor half of a surrogate pair. */
export function cleanText(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}

/** A text of so many characters at most, and a note of how many more it had. A cut never leaves half of a surrogate pair. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text
  return `${text.slice(0, max)}\n[cut: ${text.length - max} more characters]`.toWellFormed()
}

const depthMax = 32

/** The same for every text within a value; what is nested deeper than any answer has reason to be becomes null. */
export function cleanValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > depthMax) return null
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanText(key), cleanValue(item, depth + 1)]))
}
