import assert from 'node:assert/strict'
import { test } from 'node:test'
import { faultsOfMigrations } from './migrations.ts'

const first = { name: '0001_first.sql', version: 1, hash: 'a' }
const second = { name: '0004_second.sql', version: 4, hash: 'b' }
const released = {
  '0001_first.sql': { version: '0.1.0', hash: 'a' },
  '0004_second.sql': { version: '0.1.0', hash: 'b' },
}

test('a released migration that was changed or removed, and a new one before the last, are found', () => {
  assert.deepEqual(faultsOfMigrations({}, [first, second]), [])
  assert.deepEqual(faultsOfMigrations(released, [first, second, { name: '0005_new.sql', version: 5, hash: 'c' }]), [])
  const [changed, late, ...rest] = faultsOfMigrations(released, [
    { ...first, hash: 'other' },
    { name: '0003_late.sql', version: 3, hash: 'c' },
    second,
  ])
  assert.deepEqual(rest, [])
  assert.match(changed!, /^0001_first\.sql was released with 0\.1\.0 and is changed/)
  assert.match(late!, /^0003_late\.sql has a number from before the last release/)
  assert.match(faultsOfMigrations(released, [first])[0]!, /^0004_second\.sql .* is gone/)
})
