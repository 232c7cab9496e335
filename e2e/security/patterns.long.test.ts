import assert from 'node:assert/strict'
import { test } from 'node:test'
import { productPatterns } from './patterns.ts'

/**
 * Short texts first, because an exponential pattern would never end on a long one. On the longest text a quadratic
 * pattern takes seconds, and a linear one about a millisecond.
 */
const lengths = [26, 1500, 40_000]
const slow_ms = 150
/** A machine that stands still for a moment is asked again. */
const tries = 3

test('every regular expression answers long hostile text', { timeout: 300_000 }, async (t) => {
  const patterns = await productPatterns()
  assert.ok(patterns.length > 150, `${patterns.length}`)
  const slow = patterns.flatMap(({ source, flags, where }) => {
    const text = slowText(source, flags)
    return text === undefined ? [] : [`${where}: /${source}/${flags} on ${JSON.stringify(text.slice(0, 20))}…`]
  })
  t.diagnostic(`${patterns.length} regular expressions`)
  assert.deepEqual(slow, [])
})

test('a regular expression that takes the square of its text, or more, is found', { timeout: 300_000 }, () => {
  for (const source of [String.raw`\/+$`, '^(a+)+b', String.raw`\$\{([^}]*)\}`])
    assert.notEqual(slowText(source, ''), undefined, source)
})

/** A text on which a pattern is slow, of those that its own characters make. */
function slowText(source: string, flags: string): string | undefined {
  const pattern = new RegExp(source, `${flags.replace('g', '')}g`)
  return hostileTexts(source).find((text) => fastest_ms(pattern, text) > slow_ms)
}

function fastest_ms(pattern: RegExp, text: string): number {
  let best = Infinity
  for (let n = 0; n < tries && best > slow_ms; n++) {
    const began = performance.now()
    text.replaceAll(pattern, '')
    best = Math.min(best, performance.now() - began)
  }
  return best
}

/** Much of each character that a pattern may look for, and of how it begins, alone and after its beginning, with an end that it does not expect. */
function hostileTexts(source: string): string[] {
  const plain = source
    .replaceAll(/\\u([0-9a-fA-F]{4})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
    .replaceAll(/\\s|\\n/g, '\n')
    .replaceAll(/\\[dw]/g, '0')
    .replaceAll(/\\[SDWpPbB]/g, 'a')
    .replaceAll('\\', '')
  const start = (/^\^?((?:\\\W|[^\\(?*+[{|$.])*)/.exec(source)?.[1] ?? '').replaceAll('\\', '')
  const pumps = new Set([...plain, 'a', '0', ' ', '\t', ...(start === '' ? [] : [start])])
  return lengths.flatMap((length) =>
    [...pumps].flatMap((pump) => {
      const many = pump.repeat(Math.ceil(length / pump.length))
      return [`${many}\u0000\n!`, ...(start === '' ? [] : [`${start}${many}\u0000\n!`])]
    }),
  )
}
