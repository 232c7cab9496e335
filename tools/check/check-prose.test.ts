import assert from 'node:assert/strict'
import { it } from 'node:test'
import { hardWords } from './prose.ts'

it('hard words are found with their line, and plain sentences are not', () => {
  const planted = ['// A plain line.', '// Whoever asks waits.', '/** Gives the row. */', '// It ends by itself.'].join(
    '\n',
  )
  assert.deepEqual(
    hardWords(planted).map(({ line, word }) => [line, word.trim()]),
    [
      [2, 'Whoever'],
      [3, '/** Gives'],
      [4, 'by itself'],
    ],
  )
  assert.deepEqual(hardWords('/** Returns the row. Throws 404 for a missing one. */\nconst account = `nobody`'), [])
})
