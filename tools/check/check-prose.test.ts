import assert from 'node:assert/strict'
import { it } from 'node:test'
import { hardWords } from './prose.ts'

it('hard words are found with their line, and plain sentences are not', () => {
  const planted = [
    '// A plain line.',
    '// Who' + 'ever asks waits.',
    '/** Giv' + 'es the row. */',
    '// It ends by it' + 'self.',
  ].join('\n')
  assert.deepEqual(
    hardWords(planted).map(({ line, word }) => [line, word.trim()]),
    [
      [2, 'Who' + 'ever'],
      [3, '/** Giv' + 'es'],
      [4, 'by it' + 'self'],
    ],
  )
  assert.deepEqual(hardWords('/** Returns the row. Throws 404 for a missing one. */\nconst account = `nobody`'), [])
})
