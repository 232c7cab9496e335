import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { root } from '../root.ts'
import { sqlState, type Sql } from './database.ts'

/** A migration of a large table may take long; processes that start meanwhile wait for it. */
const timeout_ms = 24 * 3_600_000
/** Shorter than the lock timeout of requests, because statements on a table queue behind a migration that waits for it. */
const lockTimeout_ms = 1000
const lockPause_ms = 2000
/** About 90 s in total, in which a transaction that blocks a table may end. */
const lockTriesMax = 30

const folder = join(root, 'server/migrations')

/** A file of `server/migrations`: `0001_control_plane.sql` is version 1. */
interface Migration {
  version: number
  name: string
  text: string
  hash: string
  /** The last migration of the oldest build that can run on the schema after this one; null if no older build can. */
  runs_with: number | null
}

/** The migrations of this build, in order. */
export async function listMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_.+\.sql$/.test(name)).sort()
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, name), 'utf8')
      const [, oldest] = /^-- runs-with: (\d{4})$/m.exec(text) ?? []
      return {
        version: Number(name.slice(0, 4)),
        name,
        text,
        hash: createHash('sha256').update(text).digest('hex'),
        runs_with: oldest === undefined ? null : Number(oldest),
      }
    }),
  )
}

/** The database and this build do not match, or a migration failed to get its locks; the message has the reason. */
export class MigrationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MigrationError'
  }
}

/**
 * Migrates the database to this build's schema: all missing migrations in one transaction, forward only, one process at a
 * time (advisory lock).
 *
 * If a table is in use, it waits for a second, rolls back so that statements behind it continue, and tries again, up to
 * `lockTries` times; then it throws a `MigrationError` that names long transactions (decision 0018).
 *
 * A database that is ahead of this build is refused, unless each migration that this build does not know declares that
 * builds as old as this one run with it (`-- runs-with: 0015`). So processes of the previous release keep running, and can
 * be restarted, during an upgrade. A migration that was changed after it ran is always refused. `upTo` stops after a
 * version, for tests with data of that version.
 * @throws MigrationError
 */
export async function migrate(
  sql: Sql,
  { upTo = Infinity, lockTries = lockTriesMax } = {},
): Promise<{ applied: string[] }> {
  const migrations = (await listMigrations()).filter(({ version }) => version <= upTo)
  if ((await isStarted(sql)) && (await pending(sql, migrations)).length === 0) return { applied: [] }

  for (let tries = 1; ; tries++) {
    try {
      return await apply(sql, migrations)
    } catch (error) {
      if (!['55P03', '40P01'].includes(sqlState(error) ?? '')) throw error
      if (tries >= lockTries) throw new MigrationError(await whoIsInTheWay(sql, tries))
    }
    await sleep(lockPause_ms)
  }
}

/** Applies all missing migrations, or none. */
function apply(sql: Sql, migrations: Migration[]): Promise<{ applied: string[] }> {
  return sql.begin(async (tx) => {
    await tx.script(`set local lock_timeout = 0; set local statement_timeout = 0`)
    await tx.script(`select pg_advisory_xact_lock(hashtext('cadre migrations'))`, timeout_ms)
    await tx.script(`set local lock_timeout = ${lockTimeout_ms}`)
    await tx.script(`create table if not exists schema_migration (
      version int primary key, name text not null, hash text not null, applied_at timestamptz not null default now())`)
    await tx.script(`alter table schema_migration add column if not exists runs_with int`)
    const applied: string[] = []
    for (const migration of await pending(tx, migrations)) {
      await tx.script(migration.text, timeout_ms)
      const { version, name, hash, runs_with } = migration
      await tx`insert into schema_migration (version, name, hash, runs_with) values (${version}, ${name}, ${hash}, ${runs_with})`
      applied.push(migration.name)
    }
    return { applied }
  })
}

async function whoIsInTheWay(sql: Sql, tries: number): Promise<string> {
  const open = await sql<{ who: string }>`
    select format('process %s of PostgreSQL (%s, for %s s)', pid, coalesce(nullif(application_name, ''), 'without a name'),
      round(extract(epoch from clock_timestamp() - xact_start))) as who
    from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and xact_start < clock_timestamp() - interval '1 second'
    order by xact_start limit 5`
  const blockers = open.length > 0 ? ` Long transactions: ${open.map(({ who }) => who).join(', ')}.` : ''
  return (
    `A migration could not lock its tables: ${tries} attempts of ${lockTimeout_ms} ms failed because they were in use.${blockers} ` +
    'Nothing was changed. End these transactions, or try again when there is less load.'
  )
}

/** Applied migrations with their times, and pending ones. Throws like `migrate`. */
export async function migrationStatus(
  sql: Sql,
): Promise<{ applied: { name: string; applied_at: string }[]; pending: string[] }> {
  const migrations = await listMigrations()
  if (!(await isStarted(sql))) return { applied: [], pending: migrations.map(({ name }) => name) }
  const missing = await pending(sql, migrations)
  const applied = await sql<{
    name: string
    applied_at: string
  }>`select name, applied_at from schema_migration order by version`
  return { applied, pending: missing.map(({ name }) => name) }
}

/** Whether any migration was applied to this database. */
async function isStarted(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ known: string | null }>`select to_regclass('schema_migration')::text as known`
  return row?.known != null
}

async function pending(sql: Sql, migrations: Migration[]): Promise<Migration[]> {
  const done = await sql<{
    version: number
    name: string
    hash: string
    runs_with: number | null
  }>`
    select version, name, hash, (to_jsonb(m)->>'runs_with')::int as runs_with from schema_migration m order by version`
  const last = migrations.at(-1)?.version ?? 0
  for (const { version, name, hash, runs_with } of done) {
    const ours = migrations.find((migration) => migration.version === version)
    if (!ours && version > last && runs_with !== null && runs_with <= last) continue
    if (!ours) {
      throw new MigrationError(
        `The database is ahead of this build: it has migration ${name}, which this build does not know and cannot run with. ` +
          'Start the newer build again, or restore a backup that was made before it.',
      )
    }
    if (ours.hash !== hash) {
      throw new MigrationError(
        `Migration ${name} differs from the one that this database ran, and nothing was changed. Released migrations are never edited, so ` +
          'the database or this build is from between releases: start the build that made the database, and take a release for the next one.',
      )
    }
  }
  return migrations.filter((migration) => !done.some(({ version }) => version === migration.version))
}
