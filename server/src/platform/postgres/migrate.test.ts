import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { openDatabase, type Database } from './database.ts'
import { listMigrations, migrate } from './migrate.ts'

let made: Awaited<ReturnType<typeof makeTestDatabase>>
let database: Database
before(async () => {
  made = await makeTestDatabase()
  database = openDatabase({ connection: made.connection, connectionsMax: 4 })
})
after(async () => {
  await database.close()
  await made.drop()
})

describe('migrations', () => {
  it('migrations run once, and a database that has them stays unchanged', async () => {
    assert.deepEqual(await migrate(database.sql), { applied: [] })
  })

  it('a database with a migration that was changed later is refused', async () => {
    await database.sql`update schema_migration set hash = 'another'`
    await assert.rejects(migrate(database.sql), /differs/)
  })

  it('a database with an unknown migration is refused', async () => {
    await database.sql`delete from schema_migration`
    await database.sql`insert into schema_migration (version, name, hash) values (9999, '9999_later.sql', '')`
    await assert.rejects(migrate(database.sql), /ahead of this build/)
  })

  it('a database with unknown migrations is accepted if they declare that this build runs with them', async () => {
    const known = await listMigrations()
    const last = known.at(-1)!.version
    await database.sql`delete from schema_migration`
    for (const { version, name, hash } of known)
      await database.sql`insert into schema_migration (version, name, hash) values (${version}, ${name}, ${hash})`
    await database.sql`
      insert into schema_migration (version, name, hash, runs_with) values (9998, '9998_later.sql', '', ${last})`
    assert.deepEqual(await migrate(database.sql), { applied: [] })
    // One of two is enough to refuse this build, and so is one that needs a later build.
    for (const runs_with of [null, last + 1]) {
      await database.sql`
        insert into schema_migration (version, name, hash, runs_with) values (9999, '9999_latest.sql', '', ${runs_with})
        on conflict (version) do update set runs_with = excluded.runs_with`
      await assert.rejects(migrate(database.sql), /9999_latest\.sql, which this build does not know/)
    }
  })

  it('the oldest build that a migration declares to run with is an earlier one', async () => {
    const known = await listMigrations()
    for (const { name, version, runs_with } of known) assert.ok(runs_with === null || runs_with < version, name)
  })
})

describe('a migration of a table in use', () => {
  let other: typeof made
  let mine: Database
  let user: pg.Client
  before(async () => {
    other = await makeTestDatabase()
    mine = openDatabase({ connection: other.connection, connectionsMax: 4, timeoutMultiplier: 20 })
    await mine.sql.script('drop schema public cascade; drop schema if exists trigrams cascade; create schema public')
    await migrate(mine.sql, { upTo: 18 })
    user = new pg.Client({ ...other.connection, application_name: 'a long report' })
    await user.connect()
  })
  after(async () => {
    await user.end()
    await mine.close()
    await other.drop()
  })

  it('a migration of a table in use fails after its attempts, changes nothing and names the blocking process', async () => {
    await user.query('begin; lock table agent in row exclusive mode')
    await assert.rejects(migrate(mine.sql, { lockTries: 2 }), {
      name: 'MigrationError',
      message: /2 attempts .* in use.* process \d+ of PostgreSQL \(a long report, for \d+ s\).* Nothing was changed/,
    })
    const [last] = await mine.sql<{ version: number }>`select max(version) as version from schema_migration`
    assert.equal(last!.version, 18)
    await user.query('rollback')
  })

  it('a migration of a table in use lets others pass between its attempts, and succeeds once the table is free', async () => {
    await user.query('begin; lock table agent in row exclusive mode')
    const migrating = migrate(mine.sql)
    const isWaiting = async () =>
      (
        await mine.sql`select from pg_locks where relation = 'agent'::regclass and mode = 'ShareRowExclusiveLock' and not granted`
      ).length > 0
    await eventually(isWaiting)
    // Waits behind the migration, but not behind the transaction that blocks it.
    await mine.sql.script('begin; lock table agent in row exclusive mode; commit')
    await eventually(isWaiting)
    await user.query('commit')
    const { applied } = await migrating
    assert.equal(applied[0], '0019_agent_counts.sql')
    assert.equal(applied.length, (await listMigrations()).length - 18)
  })
})

describe('partitions', () => {
  it('partitions are days and months in UTC, also for a session in a time zone with daylight saving', async () => {
    await database.sql.begin(async (tx) => {
      await tx.script(`set local timezone = 'Europe/Berlin'`)
      // In steps, because hundreds of tables in one statement would exceed its timeout on a busy machine.
      for (let days = 20; days <= 240; days += 20) await tx`select ensure_partitions(${days}::int)`
    })
    const bounds = await database.sql<{ bounds: string }>`
      select pg_get_expr(c.relpartbound, c.oid) as bounds from pg_inherits i join pg_class c on c.oid = i.inhrelid
      where i.inhparent = 'agent_log'::regclass order by c.relname`
    assert.ok(bounds.length > 240)
    const days = bounds.map(({ bounds: text }) => /FROM \('(.+?)'\) TO \('(.+?)'\)/.exec(text)?.slice(1) ?? [])
    assert.ok(days.every(([from, to]) => from?.endsWith(' 00:00:00+00') && to?.endsWith(' 00:00:00+00')))
    assert.ok(
      days.every(([from], i) => i === 0 || from === days[i - 1]?.[1]),
      'no day is missing',
    )
  })
})
