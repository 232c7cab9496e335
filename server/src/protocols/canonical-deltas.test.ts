import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { cleanText, makeTextCleaner } from '../platform/clean-text.ts'
import { chunkMax, cutWhole, makeCutter } from './canonical-deltas.ts'

const text = fc.string({
  unit: fc.constantFrom('a', 'word', ' ', '\n', '\u00a0', '😀', 'é', '\ud83d', '\0'),
  maxLength: 3000,
})
const cuts = fc.array(fc.nat({ max: 4000 }), { maxLength: 40 })
const split = (whole: string, at: readonly number[]): string[] => {
  const places = [0, ...new Set(at.map((one) => Math.min(one, whole.length)).sort((a, b) => a - b)), whole.length]
  return places.slice(1).map((end, i) => whole.slice(places[i], end))
}

it('every split of a text into pieces gives the same chunks', () => {
  fc.assert(
    fc.property(text, cuts, (raw, at) => {
      const cleaner = makeTextCleaner()
      const cutter = makeCutter()
      const live = split(raw, at).flatMap((piece) => cutter.push(cleaner.push(piece)))
      live.push(...cutter.push(cleaner.end()), ...cutter.end())
      assert.deepEqual(live, cutWhole(cleanText(raw)))
    }),
  )
})

it('chunks lose no text, and none is empty or too long', () => {
  fc.assert(
    fc.property(text, (raw) => {
      const whole = cleanText(raw)
      const chunks = cutWhole(whole)
      assert.equal(chunks.join(''), whole)
      for (const chunk of chunks) assert.ok(chunk !== '' && [...chunk].length <= chunkMax)
    }),
  )
})

it('the chunks of a text equal those of any longer text that begins with it, except the last', () => {
  fc.assert(
    fc.property(text, text, (a, b) => {
      const [started, longer] = [cutWhole(cleanText(a)), cutWhole(cleanText(a) + cleanText(b))]
      assert.deepEqual(started.slice(0, -1), longer.slice(0, Math.max(0, started.length - 1)))
    }),
  )
})

it('the first chunks are words, and later ones are longer', () => {
  const chunks = cutWhole('one two three '.repeat(500))
  assert.deepEqual(chunks.slice(0, 3), ['one', ' two', ' three'])
  assert.ok(chunks.length < 260 && chunks.at(-2)!.length >= 50)
})
