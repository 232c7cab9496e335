import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import pg from 'pg'
import { pino } from 'pino'
import { readArchive } from '../src/backup/archive-reader.ts'
import { backUp, type Backup } from '../src/backup/back-up.ts'
import { requireKnownMigrations, restore, type Restored, type RestoreOptions } from '../src/backup/restore.ts'
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
