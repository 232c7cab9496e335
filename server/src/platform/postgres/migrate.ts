import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { root } from '../root.ts'
import { sqlState, type Sql } from './database.ts'

/** A migration of a large table takes as long as it takes; processes that start meanwhile wait for it. */
const timeout_ms = 24 * 3_600_000
/** Shorter than requests wait for a lock: statements behind a migration that waits for a table wait too. */
const lockTimeout_ms = 1000
const lockPause_ms = 2000
/** Together a minute and a half, in which what kept a table may come to its end. */
const lockTriesMax = 30

const folder = join(root, 'server/migrations')

/** A migration as it stands in `server/migrations`: `0001_control_plane.sql` is version 1. */
interface Migration {
  version: number
  name: string
  text: string
  hash: string
  /** The last migration of the oldest build that can run on the schema after this one; null where only this build can. */
  runs_with: number | null
}

/** Migrations that this build knows, in their order. */
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

/** The database and this build do not fit; the message says why. */
export class MigrationError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'MigrationError'
  }
}

/**
 * Brings the database to this build's schema: all missing migrations in one transaction, forward only, one process at a time
 * (advisory lock). For a table that is in use it waits a moment, gives way to those who wait behind it, and tries again, up to
 * `lockTries` times; then it throws a `MigrationError` that says who was in the way (decision 0018). A database that is ahead of this build is refused by a `MigrationError`, unless each
 * migration that this build does not know says that builds as old as this one run with it (`-- runs-with: 0015` in its
 * file): so the process before goes on, and can be started again, while processes are replaced. A migration that was
 * changed after it ran is refused always. `upTo` stops behind a version, for data of that version.
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

/** All that is missing, or nothing. */
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
  const blockers =
    open.length > 0 ? ` Transactions that are open for long: ${open.map(({ who }) => who).join(', ')}.` : ''
  return (
    `Tables that a migration changes were in use whenever it was tried, ${tries} times for ${lockTimeout_ms} ms.${blockers} ` +
    'Nothing was changed. End what keeps them, or try again when there is less to do.'
  )
}

/** Migrations by whether the database ran them, with the time of those that it did; throws as `migrate` does. */
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

/** Whether any migration ever ran here. */
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
