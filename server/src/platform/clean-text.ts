/** Replaces what PostgreSQL cannot store, U+0000 and lone surrogates, by U+FFFD. */
export function cleanText(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}

/**
 * Cleans text that arrives in pieces, with the same result as `cleanText` of the whole. A high surrogate at the end of a
 * piece waits for the next piece; `end` returns what still waits.
 */
export function makeTextCleaner(): { push(piece: string): string; end(): string } {
  let waiting = ''
  return {
    push(piece) {
      const text = waiting + piece
      const last = text.charCodeAt(text.length - 1)
      waiting = last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : ''
      return cleanText(waiting === '' ? text : text.slice(0, -1))
    },
    end: () => cleanText(waiting),
  }
}

/** Cuts text to `max` characters and appends the number of omitted ones. The result has no lone surrogate. */
export function cutText(text: string, max: number): string {
  if (text.length <= max) return text
  return `${text.slice(0, max)}\n[cut: ${text.length - max} more characters]`.toWellFormed()
}

const depthMax = 32

/** Applies `cleanText` to every text inside a value. Values nested deeper than 32 levels become null. */
export function cleanValue(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth > depthMax) return null
  if (Array.isArray(value)) return value.map((item) => cleanValue(item, depth + 1))
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanText(key), cleanValue(item, depth + 1)]))
}
