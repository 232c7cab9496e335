import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changesOf } from './changes.ts'

test('changed, added and removed members are listed, also where one side is a tree and the other is not', () => {
  assert.deepEqual(
    changesOf(
      { config: { model: 'a', tools: ['x'] }, old: {} },
      { config: { model: 'b', tools: [] }, old: { deep: null } },
    ),
    [
      { member: 'config.model', before: 'a', after: 'b' },
      { member: 'config.tools', before: '["x"]', after: '[]' },
      { member: 'old', before: '{}', after: undefined },
      { member: 'old.deep', before: undefined, after: 'null' },
    ],
  )
  assert.deepEqual(changesOf(null, { name: 'echo', runs: 0 }), [
    { member: 'name', before: undefined, after: 'echo' },
    { member: 'runs', before: undefined, after: '0' },
  ])
  assert.deepEqual(changesOf(null, null), [])
})
