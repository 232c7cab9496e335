import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { FrameReader } from './frames.ts'

const word = fc.constantFrom('a', ' b', 'ü€', ':', '{"x":1}', '')
const line = fc.oneof(
  fc
    .tuple(fc.constantFrom('data', 'event', 'id', 'retry', 'other'), fc.constantFrom(':', ': ', ':  '), word)
    .map((parts) => parts.join('')),
  fc.constantFrom('', '', ':comment', 'data'),
)
const text = fc
  .tuple(fc.array(line, { maxLength: 20 }), fc.constantFrom('\n', '\r\n', '\r'))
  .map(([lines, end]) => `${lines.join(end)}${end}`)

test('frames are parsed like by the reference, however the text is split', () => {
  fc.assert(
    fc.property(text, fc.array(fc.nat(), { maxLength: 5 }), (whole, cuts) => {
      const expected: unknown[] = []
      const parser = createParser({
        onEvent: ({ id, event = 'message', data }) => expected.push({ id, type: event || 'message', data }),
      })
      // The reference waits for more after a final carriage return, and ignores frames without data.
      parser.feed(`${whole}:\n`)

      const reader = new FrameReader()
      const places = cuts.map((cut) => cut % (whole.length + 1)).toSorted((a, b) => a - b)
      const pieces = [...places, whole.length].map((place, i) => whole.slice(places[i - 1] ?? 0, place))
      const frames = [...pieces, ':\n'].flatMap((piece) => [...reader.read(piece)])
      assert.deepEqual(
        frames.filter(({ data }) => data !== ''),
        expected.filter((frame) => (frame as { data: string }).data !== ''),
      )
    }),
    { numRuns: 500 },
  )
})

test('a frame with only an id changes the position', () => {
  assert.deepEqual([...new FrameReader().read('id: 7\n\n:\n\n')], [{ id: '7', type: 'message', data: '' }])
})
