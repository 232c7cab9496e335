import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import type { Logger } from 'pino'
import { openQueue, hasJobs, type Queue } from '../engine/queue/queue.ts'
import { requeueTasks } from '../engine/queue/requeue.ts'
import { openConnection, type Connection } from '../platform/postgres/connection.ts'
import { openDatabase, type DatabaseOptions, type Sql } from '../platform/postgres/database.ts'
import { listMigrations, migrate } from '../platform/postgres/migrate.ts'
import { version as ourVersion } from '../version.ts'
import { readArchive, type ArchiveContent } from './archive-reader.ts'
import type { TableSize } from './archive-writer.ts'
import { BackupError, isRefusal } from './backup-error.ts'
import { delayedTasks, type Manifest } from './manifest.ts'

export interface RestoreOptions {
  file: string
  /** The result of an earlier `readArchive`. */
  content: ArchiveContent
  connection: DatabaseOptions['connection']
  log: Logger
  onProgress?: (table: string, soFar: TableSize) => void
  /** Applied to the restored data before any other client sees it. */
  alter?: (tx: Sql) => Promise<void>
  signal: AbortSignal
}

/** The result of a restore. */
export interface Restored {
  /** Migrations that were applied because the archive is of an older version. */
  migrated: string[]
  /** Number of tasks that were queued. */
  queued: number
}

/**
 * Loads an archive into an empty database in one transaction: after an error or an interruption the database is empty,
 * except for the empty schema of the queue. It makes the schema of the archive's version, loads the data, and then applies
 * the other migrations.
 * @throws BackupError
 */
export async function restore(options: RestoreOptions): Promise<Restored> {
  const { connection, log, signal } = options
  const target = await openConnection({ connection, application_name: 'cadre restore' })
  const database = openDatabase({ connection, connectionsMax: 1, application_name: 'cadre restore', onError: () => {} })
  const stop = (): void => void target.close().catch(() => {})
  signal.addEventListener('abort', stop, { once: true })
  let queue: Queue | undefined
  try {
    signal.throwIfAborted()
    await requireEmpty(target.sql)
    // The queue makes its schema in separate transactions, which cannot be part of this one.
    queue = openQueue({ database, log })
    await queue.ready
    return await load(target, queue, options)
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  } finally {
    signal.removeEventListener('abort', stop)
    await queue?.close().catch(() => {})
    await Promise.all([target.close(), database.close()]).catch(() => {})
  }
}

async function load(
  { sql, client }: Connection,
  queue: Queue,
  { file, content, onProgress, alter, signal }: RestoreOptions,
): Promise<Restored> {
  const { manifest, checksums } = content
  const versionAt = manifest.migrations.at(-1)!.version
  return sql.begin(async (tx) => {
    // A service that starts meanwhile waits for this lock, and then finds all data.
    await tx.script(`select pg_advisory_xact_lock(hashtext('cadre migrations'))`)
    await requireEmpty(tx)
    await migrate(tx, { upTo: versionAt })
    await makePartitions(tx, manifest)
    await tx.script(`create table ${delayedTasks} (task_id text not null, start_after timestamptz not null)`)

    const read = await readArchive(file, {
      signal,
      ...(onProgress ? { onPart: onProgress } : {}),
      onTable: async ({ name, columns }, rows) => {
        const [into, ...list] = [name, ...columns].map((word) => pg.escapeIdentifier(word))
        const copy = client.query(copyFrom(`copy ${into} (${list.join(', ')}) from stdin`))
        await pipeline(Readable.from(rows, { objectMode: false }), copy).catch((error: unknown) => {
          throw isRefusal(error)
            ? new BackupError(`PostgreSQL refused the rows of table ${name}: ${error.message}.`, error)
            : error
        })
        const expected = checksums.tables.find((table) => table.name === name)?.rows
        if (copy.rowCount !== expected)
          throw new BackupError(`PostgreSQL loaded ${copy.rowCount} of ${expected} rows of table ${name}.`)
      },
    })
    if (JSON.stringify(read.checksums) !== JSON.stringify(checksums))
      throw new BackupError(`The archive ${file} was changed while it was read.`)
    await setSequences(tx, manifest)
    const { applied } = await migrate(tx)
    const queued = await requeueTasks(tx, queue)
    await tx.script(`drop table ${delayedTasks}`)
    await alter?.(tx)
    // Without statistics the planner would treat the tables as empty.
    await tx.script('analyze')
    return { migrated: applied, queued }
  })
}

/** Throws `BackupError` if this build cannot make the schema of the archive. */
export async function requireKnownMigrations({ manifest }: Pick<ArchiveContent, 'manifest'>): Promise<void> {
  const ours = await listMigrations()
  for (const { version, name, hash } of manifest.migrations) {
    const known = ours.find((migration) => migration.version === version)
    if (!known) {
      throw new BackupError(
        `The archive was written by Cadre ${manifest.cadre_version} and has migration ${name}, which this version (${ourVersion}) ` +
          'does not know. Restore it with that version, or a later one.',
      )
    }
    if (known.hash !== hash)
      throw new BackupError(
        `Migration ${name} of the archive differs from that of this version (${ourVersion}). Restore it with Cadre ${manifest.cadre_version}.`,
      )
  }
}

/** Throws `BackupError` if the database has any tables, or jobs in the queue. */
export async function requireEmpty(sql: Sql): Promise<void> {
  const found = await sql<{ name: string }>`
    select c.relname as name from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    order by c.relkind <> 'p', c.relname limit 4`
  if (found.length === 0 && !(await hasJobs(sql))) return
  const names = found.slice(0, 3).map(({ name }) => name)
  const listed = [...names, ...(found.length > names.length ? ['…'] : [])].join(', ') || 'jobs of the queue'
  throw new BackupError(
    `The database is not empty (${listed}), and a restore never overwrites. Restore into a new database: ` +
      'make one with `createdb` and set DATABASE_URL, or set CADRE_DATA_DIR to a new folder for the embedded one.',
  )
}

/** Makes the partitions of the archive that the migrations have not made. */
async function makePartitions(tx: Sql, { partitions }: Manifest): Promise<void> {
  for (const { table, name, from, to } of partitions) {
    const [made] = await tx<{ statement: string | null }>`
      select case when to_regclass(quote_ident(${name})) is null
        then format('create table %I partition of %I for values from (%L) to (%L)', ${name}::text, ${table}::text, ${from}::text, ${to}::text) end
      as statement`
    if (made?.statement != null) await tx.script(made.statement)
  }
}

/** Sets the sequences, so that new numbers follow the last one, also if its row was deleted. */
async function setSequences(tx: Sql, { sequences }: Manifest): Promise<void> {
  for (const { table, column, last_value } of sequences)
    await tx`select setval(pg_get_serial_sequence(quote_ident(${table}), ${column}), ${last_value})`
}
