import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import pg from 'pg'
import { pino } from 'pino'
import { readArchive } from '../src/backup/archive-reader.ts'
import { backUp, type Backup } from '../src/backup/back-up.ts'
import { requireKnownMigrations, restore, type Restored, type RestoreOptions } from '../src/backup/restore.ts'
import { useOf } from '../src/backup/table-uses.ts'
import { openDatabase, type Database, type Sql } from '../src/platform/postgres/database.ts'
import { newId } from '../src/platform/ids.ts'
import { insertTestAgent } from './fixtures.ts'
import { makeTestDatabase } from './harness.ts'
import { testServer } from './postgres.ts'

export type Connection = pg.ClientConfig

/** Makes a database with nothing in it, as `createdb` does. */
export async function makeEmptyDatabase(): Promise<{ connection: Connection; drop(): Promise<void> }> {
  const server = await testServer()
  const name = `test_${randomBytes(8).toString('hex')}`
  const onServer = async (statement: string): Promise<void> => {
    const admin = new pg.Client({ ...server.connection, database: 'postgres' })
    await admin.connect()
    try {
      await admin.query(statement)
    } finally {
      await admin.end()
    }
  }
  await onServer(`create database ${name} template template0`)
  return {
    connection: { ...server.connection, database: name },
    async drop() {
      await onServer(`drop database if exists ${name} with (force)`).catch(() => {})
      await server.release()
    },
  }
}

/** Writes a backup of a database to a file. */
export function save(connection: Connection, file: string): Promise<Backup> {
  const output = createWriteStream(file)
  return backUp({ connection, output, cadre_version: '0.1.0', signal: new AbortController().signal })
}

/** Loads a backup into a database, after the checks that the command makes too. */
export async function load(
  file: string,
  connection: Connection,
  more: Pick<RestoreOptions, 'alter'> = {},
): Promise<Restored> {
  const content = await readArchive(file)
  await requireKnownMigrations(content)
  return restore({
    file,
    content,
    connection,
    log: pino({ level: 'silent' }),
    ...more,
    signal: new AbortController().signal,
  })
}

/** Databases of a test file, each dropped after the test that created it. */
export interface TestDatabases {
  /** A migrated database, like one that is backed up. */
  source(): Promise<Database>
  /** An empty database, like one that is restored into. */
  target(): Promise<Database>
  /** Runs before the databases are dropped. */
  closing: (() => Promise<void>)[]
  /** After each test. */
  close(): Promise<void>
}

export function testDatabases(): TestDatabases {
  const closing: (() => Promise<void>)[] = []
  const open = ({ connection, drop }: { connection: Connection; drop(): Promise<void> }): Database => {
    const database = openDatabase({ connection, connectionsMax: 4, timeoutMultiplier: 5, onError: () => {} })
    closing.push(drop, database.close)
    return database
  }
  return {
    source: async () => open(await makeTestDatabase()),
    target: async () => open(await makeEmptyDatabase()),
    closing,
    async close() {
      for (const close of closing.splice(0).reverse()) await close()
    },
  }
}

/** Every row of every kept table as text, by table, so that two databases can be compared. */
export async function everything(sql: Sql): Promise<Record<string, string[]>> {
  const tables = await sql<{ name: string }>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`
  const rows: Record<string, string[]> = {}
  for (const { name } of tables.filter((table) => useOf(table.name).is === 'kept')) {
    const { rows: found } = await sql.query(
      `select (to_jsonb(t) - 'xid' - 'owner')::text collate "C" as row from ${name} t order by 1`,
    )
    rows[name] = found.map(({ row }) => row)
  }
  return rows
}

/** Writes values that are hard to represent as text: every type of column, empty and null, also in an old partition. */
export async function fillDatabase(sql: Sql): Promise<{ agent_id: string; project_id: number }> {
  const agent = await insertTestAgent(sql, { max_concurrent_tasks: 3 })
  const text = 'tab\t newline\n return\r backslash \\n \\. quote \' " zero-width \u200d emoji 🦀 \u0001'
  await sql`update agent set environment = ${Buffer.from([0, 255, 10, 92])}, description = ${text}, metadata = ${JSON.stringify({ text, big: 2 ** 60, small: 1e-300, null: null })} where id = ${agent.id}`
  await sql`insert into budget (id, org_id, project_id, scope, subject, max_cost_usd, period, window_start, spent_cost_usd, created_by)
    select ${newId('budget')}, org_id, id, 'project', id::text, 0.123456789012345678901234567890, 'total', '-infinity', 12345678901234567890.000000001, 'user_1' from project where id = ${agent.project_id}`
  await sql`insert into agent_usage (agent_id, minute, cpu_seconds) values (${agent.id}, '2020-02-29 12:34:00+00', 0.1::float8 + 0.2::float8)`
  await sql`insert into app_user (id, email, name, password_hash) values (${newId('user')}, 'NULL@example.com', '\\N', '')`
  await sql`insert into oauth_client (client_id, org_id, name, redirect_uris, scopes) select 'app', org_id, ${text}, array['a,b', '{"c"}', ''], '{}' from project where id = ${agent.project_id}`
  await sql.script(`
    create table agent_log_20200229 partition of agent_log for values from ('2020-02-29 00:00:00+00') to ('2020-03-01 00:00:00+00');
    insert into agent_log (id, agent_id, timestamp, level, message) values ('log_1', '${agent.id}', '2020-02-29 23:59:59.999999+00', 'info', '')`)
  return { agent_id: agent.id, project_id: agent.project_id }
}
