import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mergePatch } from '#contract/core/merge-patch.ts'
import { differences, patchBetween } from './config-diff.ts'

const value = fc.oneof(fc.integer(), fc.string(), fc.array(fc.integer(), { maxLength: 3 }))
const config = fc.dictionary(
  fc.constantFrom('model', 'tools', 'retry', 'budget'),
  fc.oneof(value, fc.dictionary(fc.constantFrom('a', 'b'), value, { noNullPrototype: true })),
  { noNullPrototype: true },
)

test('the patch of two configurations makes the second of the first, whatever they are', () => {
  fc.assert(
    fc.property(config, config, (before, after) => {
      assert.deepEqual(mergePatch(before, patchBetween(before, after)), after)
    }),
  )
})

test('equal configurations have no difference and no patch; a changed member is named by its path', () => {
  assert.deepEqual(
    patchBetween({ model: 'a', retry: { max_attempts: 2 } }, { model: 'a', retry: { max_attempts: 2 } }),
    {},
  )
  assert.deepEqual(differences({ retry: { max_attempts: 2 } }, { retry: { max_attempts: 3 }, tools: [] }), [
    { path: 'retry.max_attempts', before: 2, after: 3 },
    { path: 'tools', before: undefined, after: [] },
  ])
})
