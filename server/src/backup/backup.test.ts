import assert from 'node:assert/strict'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { insertTestAgent } from '../../test/agents.ts'
import { load, makeEmptyDatabase, save, type Connection } from '../../test/backups.ts'
import { eventually, makeTestDatabase } from '../../test/harness.ts'
import { openConnection } from '../platform/connection.ts'
import { openDatabase, type Database, type Sql } from '../platform/database.ts'
import { newId } from '../platform/ids.ts'
import { listMigrations, migrate } from '../platform/migrate.ts'
import { dropPartition } from '../platform/partitions.ts'
import { readArchive } from './archive-reader.ts'
import { backUp } from './back-up.ts'
import { BackupError } from './backup-error.ts'
import { delayedTasks } from './manifest.ts'
import { requireKnownMigrations } from './restore.ts'
import { useOf } from './table-uses.ts'

let folder: string
const closing: (() => Promise<void>)[] = []
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-backup-'))
})
after(() => rm(folder, { recursive: true, force: true }))
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A database and a pool on it, for a test. */
async function open(made: { connection: Connection; drop(): Promise<void> }): Promise<Database> {
  const database = openDatabase({ connection: made.connection, connectionsMax: 4, onError: () => {} })
  closing.push(made.drop, database.close)
  return database
}
const source = async (): Promise<Database> => open(await makeTestDatabase())
const target = async (): Promise<Database> => open(await makeEmptyDatabase())

/** Every row of every kept table as text, by table, so that two databases can be compared. */
async function everything(sql: Sql): Promise<Record<string, string[]>> {
  const tables = await sql<{ name: string }>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`
  const rows: Record<string, string[]> = {}
  for (const { name } of tables.filter((table) => useOf(table.name).is === 'kept')) {
    const { rows: found } = await sql.query(`select (to_jsonb(t) - 'xid' - 'owner')::text as row from ${name} t`)
    rows[name] = found.map(({ row }) => row).toSorted()
  }
  return rows
}

/** What is hard to write down as text: every kind of column, empty and null, old partitions. */
async function fill(sql: Sql): Promise<{ agent_id: string; project_id: number }> {
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

describe('a restored database', () => {
  it('has every row of the one that was backed up, byte for byte, also in old partitions', async () => {
    const [from, to, file] = [await source(), await target(), join(folder, 'rows.tar.gz')]
    await fill(from.sql)
    const { tables } = await save(from.settings, file)
    await load(file, to.settings)
    assert.deepEqual(await everything(to.sql), await everything(from.sql))
    const rows = new Map(tables.map((table) => [table.name, table.rows]))
    assert.deepEqual([rows.get('agent_log'), rows.get('app_user'), rows.get('task')], [1, 1, 0])
    const [old] = await to.sql`select from agent_log_20200229`
    assert.ok(old, 'the old partition is there by its name')
    const [leftover] = await to.sql`select to_regclass(${delayedTasks}) as name`
    assert.equal(leftover?.name, null)
  })

  it('has the schema of a new one, and can be backed up and restored again', async () => {
    const [from, once, twice] = [await source(), await target(), await target()]
    await fill(from.sql)
    const describe = async ({ sql }: Database): Promise<unknown> => [
      await sql`select table_name, column_name, data_type, column_default, is_nullable, is_generated, identity_generation
        from information_schema.columns where table_schema = 'public' and table_name not like '%20200229%' order by 1, 2`,
      await sql`select conrelid::regclass::text as table, conname, pg_get_constraintdef(oid) as text, convalidated from pg_constraint
        where connamespace = 'public'::regnamespace and conrelid::regclass::text not like '%20200229%' order by 1, 2`,
      await sql`select indexdef from pg_indexes where schemaname = 'public' and tablename not like '%20200229%' order by 1`,
    ]
    await save(from.settings, join(folder, 'once.tar.gz'))
    await load(join(folder, 'once.tar.gz'), once.settings)
    assert.deepEqual(await describe(once), await describe(from))
    await save(once.settings, join(folder, 'twice.tar.gz'))
    await load(join(folder, 'twice.tar.gz'), twice.settings)
    assert.deepEqual(await everything(twice.sql), await everything(from.sql))
  })

  it('gives no number again, also not one whose row is gone', async () => {
    const [from, to, file] = [await source(), await target(), join(folder, 'numbers.tar.gz')]
    const { project_id } = await fill(from.sql)
    const [gone] = await from.sql<{ id: number }>`
      insert into project (org_id, name) select org_id, 'gone' from project where id = ${project_id} returning id`
    await from.sql`delete from project where id = ${gone!.id}`
    await save(from.settings, file)
    await load(file, to.settings)
    const [next] = await to.sql<{ id: number }>`
      insert into project (org_id, name) select org_id, 'next' from project where id = ${project_id} returning id`
    assert.equal(next!.id, gone!.id + 1)
  })

  it('has events that its own transactions come after, whatever the other database counted to', async () => {
    const [from, to, file] = [await source(), await target(), join(folder, 'xids.tar.gz')]
    await from.sql`
      insert into task_event (task_id, sequence, type, data, xid) values (${newId('task')}, 1, 'task.created', '{}', '9000000000000000000')`
    await save(from.settings, file)
    await load(file, to.settings)
    const [row] = await to.sql`
      select count(*) as n, bool_and(xid < pg_snapshot_xmax(pg_current_snapshot())) as past from task_event`
    assert.deepEqual(row, { n: 1, past: true })
  })

  it('is migrated to this version where the backup is of an older one, its data too', async () => {
    const [from, to, file] = [await target(), await target(), join(folder, 'older.tar.gz')]
    await migrate(from.sql, { upTo: 9 })
    const { agent_id } = await fill(from.sql)
    await from.sql`insert into event (id, org_id, type, data, delivered_at) values (${newId('evt')}, 'org_1', 'agent.launched', '{}', '2020-01-01')`
    const { manifest } = await save(from.settings, file)
    assert.equal(manifest.migrations.at(-1)?.version, 9)

    const { migrated } = await load(file, to.settings)
    const all = (await listMigrations()).map(({ name }) => name)
    assert.deepEqual(migrated, all.slice(9))
    assert.deepEqual(await migrate(to.sql), { applied: [] }, 'nothing is left for the service to do')
    const [event] = await to.sql`select matched_at from event`
    assert.equal(event?.matched_at, '2020-01-01T00:00:00.000Z', 'renamed by a migration that ran on the data')
    const [agent] = await to.sql`select environment from agent where id = ${agent_id}`
    assert.deepEqual(agent?.environment, Buffer.from([0, 255, 10, 92]))
  })
})

describe('a restore', () => {
  let file: string
  let to: Database
  beforeEach(async () => {
    file = join(folder, 'good.tar.gz')
    const from = await source()
    await fill(from.sql)
    await save(from.settings, file)
    to = await target()
  })
  const isEmpty = async (): Promise<boolean> => {
    const found = await to.sql`
      select relname from pg_class c join pg_namespace n on n.oid = relnamespace
      where nspname = 'public' and relkind in ('r', 'p', 'v', 'm', 'S', 'i')`
    return found.length === 0
  }

  it('refuses a database in which there is anything, and leaves it as it is', async () => {
    await to.sql.script('create table somebody_elses (id int); insert into somebody_elses values (1)')
    await assert.rejects(load(file, to.settings), /not empty \(somebody_elses\)/)
    assert.deepEqual(await to.sql`select * from somebody_elses`, [{ id: 1 }])
    const schemas = await to.sql`select nspname from pg_namespace where nspname = 'pgboss'`
    assert.equal(schemas.length, 0)
  })

  it('refuses a database that a service uses, or that was restored already', async () => {
    await load(file, to.settings)
    const before = await everything(to.sql)
    await assert.rejects(load(file, to.settings), /not empty/)
    assert.deepEqual(await everything(to.sql), before)
  })

  it('refuses a damaged archive before anything is changed', async () => {
    const bytes = await readFile(file)
    await writeFile(file, bytes.subarray(0, bytes.length - 20))
    await assert.rejects(load(file, to.settings), BackupError)
    assert.ok(await isEmpty())
  })

  it('refuses what a later version wrote, or one whose migrations were others', async () => {
    const content = await readArchive(file)
    const { migrations } = content.manifest
    const later = [...migrations, { version: 9999, name: '9999_later.sql', hash: '0'.repeat(64) }]
    const changed = [{ ...migrations[0]!, hash: '0'.repeat(64) }, ...migrations.slice(1)]
    await assert.rejects(
      requireKnownMigrations({ manifest: { ...content.manifest, cadre_version: '9.9.9', migrations: later } }),
      /by Cadre 9\.9\.9 and has migration 9999_later\.sql.*that version, or a later one/,
    )
    await assert.rejects(
      requireKnownMigrations({ manifest: { ...content.manifest, migrations: changed } }),
      /0001_control_plane\.sql of the archive differs/,
    )
  })

  it('leaves nothing where it fails in the middle, and can be tried again', async () => {
    await assert.rejects(
      load(file, to.settings, {
        alter: async () => {
          throw new Error('at the very end')
        },
      }),
      /at the very end/,
    )
    assert.ok(await isEmpty())
    await load(file, to.settings)
    assert.ok(!(await isEmpty()))
  })

  it('leaves nothing where PostgreSQL ends its connection', async () => {
    const killed = load(file, to.settings, {
      alter: async (tx) => {
        const [{ pid } = { pid: 0 }] = await tx<{ pid: number }>`select pg_backend_pid() as pid`
        await to.sql`select pg_terminate_backend(${pid})`
        await tx`select 1`
      },
    })
    await assert.rejects(killed)
    assert.ok(await isEmpty())
  })

  it('keeps a service that starts meanwhile waiting, which finds all of it', async () => {
    let migrating: Promise<unknown> | undefined
    await load(file, to.settings, {
      alter: async () => {
        migrating = migrate(to.sql)
        await eventually(async () => {
          const waiting = await to.sql`select from pg_locks where locktype = 'advisory' and not granted`
          return waiting.length > 0
        })
      },
    })
    assert.deepEqual(await migrating, { applied: [] })
  })
})

describe('a backup', () => {
  /** A database of which the first table alone is more than what is held between PostgreSQL and the output. */
  const large = async (): Promise<Database> => {
    const from = await source()
    const { agent_id } = await fill(from.sql)
    await from.sql`
      insert into agent_log (id, agent_id, level, message)
      select 'log_' || n, ${agent_id}, 'info', (select string_agg(md5(random()::text), '') from generate_series(1, 20 + n * 0)) from generate_series(1, 40000) n`
    return from
  }
  /** Writes to a file, and does something once the first of the archive was written, before anything more is. */
  const interrupted = (file: string, work: () => Promise<void>): Writable => {
    const out = createWriteStream(file)
    let isFirst = true
    return new Writable({
      write(chunk, _encoding, done) {
        const before = isFirst ? work() : Promise.resolve()
        isFirst = false
        before.then(() => void out.write(chunk, done), done)
      },
      final: (done) => void out.end(done),
    })
  }
  const options = { cadre_version: '0.1.0', signal: new AbortController().signal }

  it('shows one moment, and keeps nobody from writing', async () => {
    const [from, to, file] = [await large(), await target(), join(folder, 'moment.tar.gz')]
    const before = await everything(from.sql)
    const output = interrupted(file, async () => {
      const agent = await insertTestAgent(from.sql)
      await from.sql`update agent set description = 'later'`
      await from.sql`delete from oauth_client`
      await from.sql`insert into webhook_lane (webhook_id) select id from webhook`
      await from.sql`insert into removed_agent (agent_id) values (${agent.id})`
      await from.sql`delete from agent_log`
    })
    await backUp({ ...options, connection: from.settings, output })
    const [agents] = await from.sql`select count(*) as n from agent where description in ('later', '')`
    assert.equal(agents?.n, 2, 'it was written meanwhile')
    await load(file, to.settings)
    assert.deepEqual(await everything(to.sql), before)
  })

  it('keeps its tables from being dropped, and partitions are dropped another time', async () => {
    const [from, file] = [await large(), join(folder, 'partitions.tar.gz')]
    let wasDropped: boolean | undefined
    const output = interrupted(file, async () => {
      wasDropped = await dropPartition(from.sql, { table: 'agent_log', name: 'agent_log_20200229' })
    })
    await backUp({ ...options, connection: from.settings, output })
    assert.equal(wasDropped, false)
    assert.equal(await dropPartition(from.sql, { table: 'agent_log', name: 'agent_log_20200229' }), true)
  })

  it('fails with the connection, and leaves nothing that could be taken for an archive', async () => {
    const [from, file] = [await large(), join(folder, 'killed.tar.gz')]
    const output = interrupted(file, async () => {
      await from.sql`
        select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cadre backup' and datname = current_database()`
    })
    await assert.rejects(backUp({ ...options, connection: from.settings, output }), /terminat/)
    await assert.rejects(readArchive(file), BackupError)
  })

  it('is ended by its signal, at once and whatever it waits for', async () => {
    const from = await source()
    const held = await openConnection({ connection: from.settings })
    closing.push(held.close)
    await held.sql.script('begin; lock table task in access exclusive mode')
    const waits = async (): Promise<boolean> =>
      (await from.sql`select from pg_locks where not granted and relation = 'task'::regclass`).length > 0
    const stop = new AbortController()
    const output = createWriteStream(join(folder, 'stopped.tar.gz'))
    const saving = backUp({ ...options, connection: from.settings, output, signal: stop.signal })
    saving.catch(() => {})
    await eventually(waits)
    stop.abort(new Error('told to'))
    await assert.rejects(saving, /told to/)
    await eventually(async () => !(await waits()))
  })

  it('is not made of a database without tables, nor of one that is ahead of this build', async () => {
    const [nothing, later] = [await target(), await source()]
    await assert.rejects(save(nothing.settings, join(folder, 'none.tar.gz')), /nothing in it that could be kept/)
    await later.sql`insert into schema_migration (version, name, hash) values (9999, '9999_later.sql', '')`
    await assert.rejects(save(later.settings, join(folder, 'none.tar.gz')), /ahead of this build/)
  })
})
