import { isObject } from '#contract/core/merge-patch.ts'
import { runBounded, TookTooLong } from './bounded-run.ts'

/** Maximum CPU time for trying all patterns of a schema. */
const patterns_ms = 250
/**
 * Lengths of the texts that are tried: an exponential pattern is slow on the short one, a cubic one on the long one.
 */
const lengths = [32, 1000] as const
/** Maximum number of pieces that one pattern is tried with. */
const piecesMax = 24

/** A pattern that takes long on an adverse text, as text about the schema; undefined for none. */
export function slowPattern(schema: unknown): string | undefined {
  const began = performance.now()
  for (const { pattern, path } of patternsOf(schema)) {
    const left_ms = patterns_ms - (performance.now() - began)
    if (left_ms <= 0) return 'has patterns that take too long to try'
    if (isSlow(pattern, left_ms))
      return `has a pattern that takes too long on some texts: ${path} is ${JSON.stringify(pattern.slice(0, 80))}`
  }
  return undefined
}

interface Pattern {
  pattern: string
  /** Its path, with dots. */
  path: string
}

function patternsOf(schema: unknown): Pattern[] {
  const patterns: Pattern[] = []
  const open: { value: unknown; path: string[] }[] = [{ value: schema, path: [] }]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { value, path } = next
    if (typeof value !== 'object' || value === null) continue
    const add = (pattern: string, ...more: string[]): unknown =>
      patterns.push({ pattern, path: [...path, ...more].join('.') })
    if (isObject(value)) {
      if (typeof value['pattern'] === 'string') add(value['pattern'], 'pattern')
      if (isObject(value['patternProperties']))
        for (const name of Object.keys(value['patternProperties'])) add(name, 'patternProperties')
    }
    for (const [name, member] of Object.entries(value)) open.push({ value: member, path: [...path, name] })
  }
  return patterns
}

function isSlow(pattern: string, time_ms: number): boolean {
  const expression = asExpression(pattern)
  // An invalid pattern is reported when the schema is compiled.
  if (!expression) return false
  const start = /^\^?([\w \-@/:]*)/.exec(pattern)?.[1] ?? ''
  try {
    runBounded(
      () => {
        for (const piece of piecesOf(pattern))
          for (const length of lengths)
            for (const before of new Set(['', start]))
              expression.test(`${before}${piece.repeat(Math.ceil(length / piece.length))}\u0001`)
      },
      Math.max(1, Math.floor(time_ms)),
    )
    return false
  } catch (error) {
    if (error instanceof TookTooLong) return true
    throw error
  }
}

/** Pieces of text that a pattern may repeat: its letters and words, and one of each kind of character. */
function piecesOf(pattern: string): string[] {
  const words = pattern.match(/[A-Za-z0-9]{2,8}/g) ?? []
  const letters = pattern.match(/[^\\^$.*+?()[\]{}|]/g) ?? []
  return [...new Set(['a', 'A', '0', ' ', '-', '.', '_', ...words, ...letters])].slice(0, piecesMax)
}

function asExpression(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern, 'u')
  } catch {
    try {
      return new RegExp(pattern)
    } catch {
      return undefined
    }
  }
}
