// test: own process
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeTestDatabase } from '../../../test/harness.ts'
import { bulk, promotedBy } from '../../../test/old-generation.ts'
import { jsonb, openDatabase } from './database.ts'

// 700 ms with its process.
test('objects of statements do not reach the old generation', async (t) => {
  const made = await makeTestDatabase()
  const database = openDatabase({ connection: made.connection, connectionsMax: 4 })
  t.after(async () => {
    await database.close()
    await made.drop()
  })
  const statements = async (): Promise<void> => {
    for (let at = 0; at < 60; at++) await database.sql`select length(${jsonb(bulk())}::text) as length`
  }
  const promoted = await promotedBy(() => Promise.all(Array.from({ length: 16 }, statements)))
  assert.ok(promoted < 6 * 1024 * 1024, `${promoted / 1024 / 1024} MB of 75`)
})
