import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeTestDatabase } from '../../test/harness.ts'
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
  it('run once: a database that has them is left as it is', async () => {
    assert.deepEqual(await migrate(database.sql), { applied: [] })
  })

  it('that were changed after they ran are refused', async () => {
    await database.sql`update schema_migration set hash = 'another'`
    await assert.rejects(migrate(database.sql), /differs/)
  })

  it('that this build does not know are refused', async () => {
    await database.sql`delete from schema_migration`
    await database.sql`insert into schema_migration (version, name, hash) values (9999, '9999_later.sql', '')`
    await assert.rejects(migrate(database.sql), /ahead of this build/)
  })

  it('that this build does not know are no obstacle where they say that it runs with them', async () => {
    const known = await listMigrations()
    const last = known.at(-1)!.version
    await database.sql`delete from schema_migration`
    for (const { version, name, hash } of known)
      await database.sql`insert into schema_migration (version, name, hash) values (${version}, ${name}, ${hash})`
    await database.sql`
      insert into schema_migration (version, name, hash, runs_with) values (9998, '9998_later.sql', '', ${last})`
    assert.deepEqual(await migrate(database.sql), { applied: [] })
    // One of two is enough to keep this build out, and so is one that asks for a later build.
    for (const runs_with of [null, last + 1]) {
      await database.sql`
        insert into schema_migration (version, name, hash, runs_with) values (9999, '9999_latest.sql', '', ${runs_with})
        on conflict (version) do update set runs_with = excluded.runs_with`
      await assert.rejects(migrate(database.sql), /9999_latest\.sql, which this build does not know/)
    }
  })

  it('say of which builds they can be run with, of those there were before', async () => {
    const known = await listMigrations()
    for (const { name, version, runs_with } of known) assert.ok(runs_with === null || runs_with < version, name)
  })
})

describe('partitions', () => {
  it('are days and months of UTC, also for a session in a zone that changes its clocks', async () => {
    await database.sql.begin(async (tx) => {
      await tx.script(`set local timezone = 'Europe/Berlin'`)
      await tx`select ensure_partitions(240)`
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
