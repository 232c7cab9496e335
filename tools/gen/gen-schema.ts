import { writeFileSync } from 'node:fs'
import pg from 'pg'
import { openDatabase } from '../../server/src/platform/postgres/database.ts'
import { migrate } from '../../server/src/platform/postgres/migrate.ts'
import { startTestServer } from '../../server/test/postgres.ts'
import { readSchema } from './read-schema.ts'

const file = new URL('../../server/schema.sql', import.meta.url)
const head = `-- The schema after all migrations, for reading and for reviews: made by \`npm run gen\`, never run and never edited.
-- Changes are made by a new file in server/migrations. Partitions by time are left out: ensure_partitions() makes them.`

/** `server/schema.sql`: the schema after all migrations of an empty database. Starts a separate PostgreSQL for it. */
export async function schemaText(): Promise<string> {
  const server = await startTestServer()
  try {
    const name = 'cadre_schema'
    const connection: pg.ClientConfig = { ...server.connection, database: name }
    await createDatabase(server.connection, name)
    const database = openDatabase({ connection, connectionsMax: 1 })
    try {
      await migrate(database.sql)
      return `${head}\n\n${await readSchema(database.sql)}`
    } finally {
      await database.close()
    }
  } finally {
    await server.stop()
  }
}

async function createDatabase(connection: pg.ClientConfig, name: string): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    await client.query(`create database ${pg.escapeIdentifier(name)}`)
  } finally {
    await client.end()
  }
}

if (import.meta.main) writeFileSync(file, await schemaText())
