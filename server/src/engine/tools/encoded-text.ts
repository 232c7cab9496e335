/** A decoded text with the original position of each of its code units. */
interface Decoded {
  text: string
  /** The position in the original at which each code unit of `text` begins, and its end. */
  starts: number[]
}

/**
 * Bytes in percent-encoding, and characters as HTML entities: by number, or by name for the characters that HTML must
 * escape.
 */
const encoded = /(?:%[0-9a-f]{2})+|&(?:#x0*[0-9a-f]{1,6}|#0*[0-9]{1,7}|amp|lt|gt|quot|apos|nbsp);?/gi
const named: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0' }

/** Maximum length of the encoded form of one code unit: `&#1114111;` with a few zeros. */
export const encodedLengthMax = 14

/**
 * Replaces `values` in a text where they are percent-encoded or HTML entities, in whole or in part, in any letter case.
 * `values` must not be empty strings, and the longest must come first.
 */
export function replaceEncoded(given: string, values: readonly string[], replacement: string): string {
  if (!/%[0-9a-f]{2}|&[#a-z]/i.test(given)) return given
  const { text, starts } = decode(given)
  const ranges: { from: number; to: number }[] = []
  for (const value of values)
    for (let at = text.indexOf(value); at !== -1; at = text.indexOf(value, at + value.length))
      ranges.push({ from: starts[at]!, to: starts[at + value.length]! })
  if (ranges.length === 0) return given
  let clean = ''
  let done = 0
  for (const { from, to } of ranges.toSorted((a, b) => a.from - b.from || b.to - a.to)) {
    if (to <= done) continue
    clean += `${given.slice(done, Math.max(done, from))}${replacement}`
    done = to
  }
  return clean + given.slice(done)
}

function decode(given: string): Decoded {
  let text = ''
  const starts: number[] = []
  const keep = (from: number, to: number): void => {
    text += given.slice(from, to)
    for (let at = from; at < to; at++) starts.push(at)
  }
  let done = 0
  for (const { 0: code, index } of given.matchAll(encoded)) {
    keep(done, index)
    const units = code.startsWith('%') ? ofBytes(code) : ofEntity(code)
    for (const { unit, at } of units) {
      text += unit
      for (let i = 0; i < unit.length; i++) starts.push(index + at)
    }
    done = index + code.length
  }
  keep(done, given.length)
  starts.push(given.length)
  return { text, starts }
}

/** The characters of a run of bytes, with their positions in the run. */
function ofBytes(run: string): { unit: string; at: number }[] {
  const characters: { unit: string; at: number }[] = []
  let bytes = 0
  // An invalid byte sequence becomes one replacement character per byte or more. Positions are then approximate, but no
  // value has such a character.
  for (const unit of Buffer.from(run.replaceAll('%', ''), 'hex').toString()) {
    characters.push({ unit, at: Math.min(bytes * 3, run.length) })
    bytes += unit === '\ufffd' ? 1 : Buffer.byteLength(unit)
  }
  return characters
}

function ofEntity(code: string): { unit: string; at: number }[] {
  const inside = code.slice(1).replace(/;$/, '').toLowerCase()
  const number = inside.startsWith('#x') ? Number.parseInt(inside.slice(2), 16) : Number(inside.slice(1))
  const unit = inside.startsWith('#') ? (number <= 0x10_ff_ff ? String.fromCodePoint(number) : code) : named[inside]
  return [{ unit: unit ?? code, at: 0 }]
}
