import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test, { after, before } from 'node:test'
import pg from 'pg'
import { openDatabase } from '../../server/src/platform/postgres/database.ts'
import { migrate } from '../../server/src/platform/postgres/migrate.ts'
import { skipInShortRun } from '../../server/test/long-run.ts'
import { testServer, type TestServer } from '../../server/test/postgres.ts'
import { readSchema } from './read-schema.ts'

let server: TestServer
before(async () => (server = await testServer()))
after(() => server.release())

test('the text of a schema makes the same schema again', async () => {
  const migrated = await schemaAfter(migrate)
  assert.ok(migrated.includes('create table agent ('))
  assert.equal(await schemaAfter((sql) => sql.script(migrated)), migrated)
})

test('partitions that come with time do not change the text', { skip: skipInShortRun }, async () => {
  const migrated = await schemaAfter(migrate)
  const later = await schemaAfter(async (sql) => {
    await migrate(sql)
    await sql`select ensure_partitions(90)`
  })
  assert.equal(later, migrated)
})

/** The schema of a new database once `prepare` is done with it. */
async function schemaAfter(
  prepare: (sql: ReturnType<typeof openDatabase>['sql']) => Promise<unknown>,
): Promise<string> {
  const name = `schema_${randomBytes(6).toString('hex')}`
  await asAdmin(`create database ${name}`)
  const database = openDatabase({ connection: { ...server.connection, database: name }, connectionsMax: 1 })
  try {
    await prepare(database.sql)
    return await readSchema(database.sql)
  } finally {
    await database.close()
    await asAdmin(`drop database ${name}`)
  }
}

async function asAdmin(statement: string): Promise<void> {
  const client = new pg.Client(server.connection)
  await client.connect()
  await client.query(statement).finally(() => client.end())
}
