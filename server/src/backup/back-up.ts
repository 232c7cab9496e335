import type { Writable } from 'node:stream'
import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { delayedJobsQuery } from '../engine/queue/queue.ts'
import { openConnection, type Connection } from '../platform/postgres/connection.ts'
import { isConnectionLost, type DatabaseOptions } from '../platform/postgres/database.ts'
import { migrationStatus } from '../platform/postgres/migrate.ts'
import { openArchiveWriter, type TableSize } from './archive-writer.ts'
import { BackupError, isRefusal } from './backup-error.ts'
import { type Checksums, delayedTasks, format, type Manifest, type TableChecksum } from './manifest.ts'
import { listStoredTables, readSnapshotContent } from './snapshot.ts'

export interface BackupOptions {
  connection: DatabaseOptions['connection']
  /** Ended with the archive, or destroyed after an error. */
  output: Writable
  cadre_version: string
  /** Included in the archive. It must be the key of the database. */
  secret_key?: { text: string; key_id: string } | undefined
  onProgress?: (table: string, soFar: TableSize) => void
  signal: AbortSignal
}

/** Content of a written archive. */
export interface Backup {
  manifest: Manifest
  tables: Checksums['tables']
}

/** A concurrent migration may change the set of tables; then the snapshot is taken again. */
const triesMax = 10

/**
 * Writes an archive of the database in use, from the snapshot of a read-only transaction. It blocks no reads or writes; only
 * migrations, and making and dropping partitions, wait for its end.
 * @throws BackupError, MigrationError, and errors of PostgreSQL and `output`
 */
export async function backUp(options: BackupOptions): Promise<Backup> {
  const { connection, output, cadre_version, secret_key, onProgress, signal } = options
  const writer = openArchiveWriter(output, signal)
  const source = await openConnection({ connection, application_name: 'cadre backup' })
  const stop = (): void => void source.close().catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  try {
    signal.throwIfAborted()
    await beginSnapshot(source)
    // A database that is ahead of this build has tables that this build does not know.
    await migrationStatus(source.sql)
    const content = await readSnapshotContent(source.sql)
    if (secret_key && content.key_id !== null && content.key_id !== secret_key.key_id) {
      throw new BackupError(
        `The secret key of this command (${secret_key.key_id}) is not that of the database (${content.key_id}). ` +
          'Set CADRE_SECRET_KEY to the key of the service. While the key is being replaced, run `cadre secret-key rotate` first.',
      )
    }
    const delayed = await selectDelayed(source)
    const manifest: Manifest = {
      format,
      cadre_version,
      ...content,
      tables: [...content.tables, { name: delayedTasks, columns: ['task_id', 'start_after'] }],
    }
    await writer.manifest(manifest)
    if (secret_key) await writer.secretKey(secret_key.text)
    const copy = async (name: string, what: string): Promise<TableChecksum> => {
      const rows = source.client.query(copyTo(`copy ${what} to stdout`))
      return writer.table(name, rows, (soFar) => onProgress?.(name, soFar))
    }
    const tables: TableChecksum[] = []
    for (const { name, columns } of content.tables) {
      // COPY of a partitioned table needs a query.
      const list = columns.map((column) => pg.escapeIdentifier(column)).join(', ')
      tables.push(await copy(name, `(select ${list} from ${pg.escapeIdentifier(name)})`))
    }
    tables.push(await copy(delayedTasks, `(${delayed})`))
    await writer.end()
    return { manifest, tables }
  } catch (error) {
    output.destroy()
    if (signal.aborted) throw signal.reason
    // PostgreSQL's message about the end of a connection is lost if no statement was running.
    if (error instanceof Error && (isRefusal(error) || isConnectionLost(error)))
      throw new BackupError(`PostgreSQL ended the backup: ${error.message}.`, error)
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
    await source.close().catch(() => {})
  }
}

/** Begins the transaction of the snapshot, with locks that prevent every table from being altered or dropped. */
async function beginSnapshot({ sql }: Connection): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const names = await listStoredTables(sql)
    if (!names.includes('task')) {
      throw new BackupError('The database has no tables of Cadre, so there is nothing to back up. Check DATABASE_URL.')
    }
    await sql.script('begin isolation level repeatable read, read only')
    // The tables are locked before the first read, so that none changes between the snapshot and its COPY.
    await sql.script(`lock table ${names.map((name) => pg.escapeIdentifier(name)).join(', ')} in access share mode`)
    await sql.script(
      `set local extra_float_digits = 1; set local bytea_output = 'hex'; set local intervalstyle = 'postgres'`,
    )
    if (String(await listStoredTables(sql)) === String(names)) return
    await sql.script('rollback')
    if (tries === triesMax) throw new BackupError('The database is being migrated. Try again when that is done.')
  }
}

/** The query of `delayedTasks`; empty without a queue, which the first start of a service makes. */
async function selectDelayed({ sql }: Connection): Promise<string> {
  const [queue] = await sql<{ is_there: boolean }>`select to_regclass('pgboss.job') is not null as is_there`
  return queue?.is_there ? delayedJobsQuery : 'select null, null where false'
}
