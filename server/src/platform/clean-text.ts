/** PostgreSQL stores neither U+0000 nor half of a surrogate pair. */
export function cleanText(text: string): string {
  return text.replaceAll('\0', '\uFFFD').toWellFormed()
}

/**
 * Cleans a text that comes in pieces: all pieces together give what `cleanText` gives of the whole. Half of a surrogate
 * pair at the end of a piece waits for the next one; `end` gives what still waits.
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
