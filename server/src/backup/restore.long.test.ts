import assert from 'node:assert/strict'
import { createWriteStream } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { everything, fillDatabase, load, save, testDatabases } from '../../test/backups.ts'
import { skipInShortRun } from '../../test/long-run.ts'
import { eventually } from '../../test/harness.ts'
import type { Database } from '../platform/postgres/database.ts'
import { newId } from '../platform/ids.ts'
import { listMigrations, migrate } from '../platform/postgres/migrate.ts'
import { makeSecrets } from '../platform/crypto/secrets.ts'
import { readArchive } from './archive-reader.ts'
import { openArchiveWriter } from './archive-writer.ts'
import { BackupError } from './backup-error.ts'
import { dropSecrets, type DroppedSecrets } from './drop-secrets.ts'
import { delayedTasks } from './manifest.ts'
import { prepareRehearsal } from './rehearse.ts'
import { requireKnownMigrations } from './restore.ts'

const { source, target, close } = testDatabases()
let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-backup-'))
})
after(() => rm(folder, { recursive: true, force: true }))
afterEach(close)

describe('a restored database', () => {
  it('a restored database has every row of the original, byte for byte, also in old partitions', async () => {
    const [from, to, file] = [await source(), await target(), join(folder, 'rows.tar.gz')]
    await fillDatabase(from.sql)
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

  it(
    'a restored database has the schema of a new one, and can be backed up and restored again',
    { skip: skipInShortRun },
    async () => {
      const [from, once, twice] = [await source(), await target(), await target()]
      await fillDatabase(from.sql)
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
    },
  )

  it('a restored database does not reuse a number, even of a deleted row', { skip: skipInShortRun }, async () => {
    const [from, to, file] = [await source(), await target(), join(folder, 'numbers.tar.gz')]
    const { project_id } = await fillDatabase(from.sql)
    const [deleted] = await from.sql<{ id: number }>`
      insert into project (org_id, name) select org_id, 'gone' from project where id = ${project_id} returning id`
    await from.sql`delete from project where id = ${deleted!.id}`
    await save(from.settings, file)
    await load(file, to.settings)
    const [next] = await to.sql<{ id: number }>`
      insert into project (org_id, name) select org_id, 'next' from project where id = ${project_id} returning id`
    assert.equal(next!.id, deleted!.id + 1)
  })

  it(
    'new events of a restored database come after the restored ones, whatever transaction numbers the original had',
    { skip: skipInShortRun },
    async () => {
      const [from, to, file] = [await source(), await target(), join(folder, 'xids.tar.gz')]
      await from.sql`
      insert into task_event (task_id, sequence, type, data, xid) values (${newId('task')}, 1, 'task.created', '{}', '9000000000000000000')`
      await save(from.settings, file)
      await load(file, to.settings)
      const [row] = await to.sql`
      select count(*) as n, bool_and(xid < pg_snapshot_xmax(pg_current_snapshot())) as past from task_event`
      assert.deepEqual(row, { n: 1, past: true })
    },
  )

  it('a backup of an older version is migrated to this version, with its data', { skip: skipInShortRun }, async () => {
    const [from, to, file] = [await target(), await target(), join(folder, 'older.tar.gz')]
    await migrate(from.sql, { upTo: 9 })
    const { agent_id } = await fillDatabase(from.sql)
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

describe('a restore without the key', () => {
  it('a restore without the key removes secrets, disables what needs them, and keeps everything else', async () => {
    const [from, to, file] = [await source(), await target(), join(folder, 'secrets.tar.gz')]
    const { agent_id, project_id } = await fillDatabase(from.sql)
    const [lost, ours] = [
      makeSecrets('a lost secret key, of 32 characters'),
      makeSecrets('another key, of 32 characters and more'),
    ]
    const [org] = await from.sql<{ id: string }>`select org_id as id from project where id = ${project_id}`
    const [webhook, delivery] = [newId('wh'), newId('dlv')]
    await from.sql`insert into service_secret (name, value) values ('key_id', ${Buffer.from(lost.key_id)}), ('signing key', 'x')`
    await from.sql`insert into credential (id, project_id, name, value, created_by) values ('cred_1', ${project_id}, 'TOKEN', 'x', 'user_1')`
    await from.sql`insert into idempotency (subject, key, hash, status, body) values ('user_1', 'k', 'x', 201, 'x')`
    await from.sql`
      insert into webhook (id, org_id, url, events, secret, created_by)
      values (${webhook}, ${org!.id}, 'https://hooks.example.com/', '{agent.completed}', ${lost.encrypt('webhook-secret', 'theirs', webhook)}, 'user_1')`
    await from.sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, next_attempt_at) values (${delivery}, ${webhook}, ${org!.id}, ${newId('evt')}, 'agent.completed', now())`
    const trigger = newId('trig')
    await from.sql`
      insert into trigger (id, project_id, agent_id, name, source, filter, action, priority, address_hash, secret, created_by)
      values (${trigger}, ${project_id}, ${agent_id}, 'news', 'bearer', '[]', 'start', 5, '\\x00', ${lost.encrypt('trigger-secret', 'theirs', trigger)}, 'user_1')`
    const model_provider = newId('mprov')
    await from.sql`
      insert into model_provider (id, org_id, name, base_url, protocol, api_key, key_preview, created_by)
      values (${model_provider}, ${org!.id}, 'acme', 'https://models.example.com/v1', 'chat',
        ${lost.encrypt('model-provider', 'theirs', model_provider)}, '…eirs', 'user_1')`
    await save(from.settings, file)

    let dropped: DroppedSecrets | undefined
    await load(file, to.settings, { alter: async (tx) => void (dropped = await dropSecrets(tx, ours)) })
    assert.deepEqual(dropped, {
      agents: ['agent'],
      credentials: ['TOKEN'],
      model_providers: ['acme'],
      webhooks: ['https://hooks.example.com/'],
      triggers: ['news'],
    })
    assert.deepEqual(await to.sql`select name, api_key, key_preview from model_provider`, [
      { name: 'acme', api_key: null, key_preview: null },
    ])
    const [paused] = await to.sql<{ status: string; secret: Buffer }>`select status, secret from trigger`
    assert.equal(paused!.status, 'paused')
    assert.equal(ours.decrypt('trigger-secret', paused!.secret, trigger).length, 43)
    const [found] = await to.sql<{ status: string; reason: string; secret: Buffer }>`
      select status, disabled_reason as reason, secret from webhook`
    assert.deepEqual([found!.status, found!.reason], ['disabled', 'requested'])
    assert.equal(ours.decrypt('webhook-secret', found!.secret, webhook).length, 43, 'it can be rotated')
    assert.deepEqual(await to.sql`select status, failure from delivery`, [
      { status: 'failed', failure: 'webhook_disabled' },
    ])
    const now = await everything(to.sql)
    for (const table of ['credential', 'idempotency', 'service_secret']) assert.deepEqual(now[table], [], table)
    const before = await everything(from.sql)
    for (const table of ['agent_log', 'app_user', 'budget', 'oauth_client', 'project'])
      assert.deepEqual(now[table], before[table], table)
    const [agent] = await to.sql`select environment, description <> '' as described from agent where id = ${agent_id}`
    assert.deepEqual(agent, { environment: null, described: true })
  })
})

describe('a rehearsal', () => {
  it('after a rehearsal agents and schedules are paused, webhooks disabled, and everything else is unchanged', async () => {
    const [from, to, file] = [await source(), await target(), join(folder, 'rehearsal.tar.gz')]
    const { agent_id, project_id } = await fillDatabase(from.sql)
    const webhook = newId('wh')
    await from.sql`
      insert into webhook (id, org_id, url, events, secret, created_by)
      select ${webhook}, org_id, 'https://hooks.example.com/', '{agent.completed}', 'x', 'user_1' from project where id = ${project_id}`
    await from.sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, next_attempt_at)
      values (${newId('dlv')}, ${webhook}, 'org_1', ${newId('evt')}, 'agent.completed', now())`
    await from.sql`
      insert into schedule (id, project_id, agent_id, name, cron, time_zone, input, priority, overlap, catch_up, next_run_at, created_by)
      values ('sched_1', ${project_id}, ${agent_id}, 'often', '* * * * *', 'UTC', '"go"', 5, 'skip', 'once', now(), 'user_1')`
    await from.sql`
      insert into agent (id, project_id, name, status, settles_to, launch_trigger, config, created_by, token_subject)
      select 'agent_' || n, project_id, 'agent ' || n, (array['creating', 'updating', 'stopped', 'error'])[n], (array['running', 'running'])[n],
        (array['create', null])[n], config, created_by, token_subject from agent, generate_series(1, 4) n where id = ${agent_id}`
    await save(from.settings, file)
    await load(file, to.settings, { alter: prepareRehearsal })
    const states = await to.sql<{ status: string }>`select status from agent order by name`
    assert.deepEqual(
      states.map(({ status }) => status),
      ['paused', 'paused', 'paused', 'stopped', 'error'],
    )
    assert.deepEqual(await to.sql`select status, next_run_at from schedule`, [{ status: 'paused', next_run_at: null }])
    assert.deepEqual(await to.sql`select status from webhook`, [{ status: 'disabled' }])
    assert.deepEqual(await to.sql`select status from delivery`, [{ status: 'failed' }])
    const [before, after] = [await everything(from.sql), await everything(to.sql)]
    for (const table of Object.keys(before).filter(
      (name) => !['agent', 'schedule', 'webhook', 'delivery'].includes(name),
    ))
      assert.deepEqual(after[table], before[table], table)
  })
})

describe('a restore', () => {
  let file: string
  let to: Database
  beforeEach(async () => {
    file = join(folder, 'good.tar.gz')
    const from = await source()
    await fillDatabase(from.sql)
    await save(from.settings, file)
    to = await target()
  })
  const isEmpty = async (): Promise<boolean> => {
    const found = await to.sql`
      select relname from pg_class c join pg_namespace n on n.oid = relnamespace
      where nspname = 'public' and relkind in ('r', 'p', 'v', 'm', 'S', 'i')`
    return found.length === 0
  }

  it('a restore refuses a database that is not empty, and does not change it', async () => {
    await to.sql.script('create table somebody_elses (id int); insert into somebody_elses values (1)')
    await assert.rejects(load(file, to.settings), /not empty \(somebody_elses\)/)
    assert.deepEqual(await to.sql`select * from somebody_elses`, [{ id: 1 }])
    const schemas = await to.sql`select nspname from pg_namespace where nspname = 'pgboss'`
    assert.equal(schemas.length, 0)
  })

  it(
    'a restore refuses a database that a service uses, or that was already restored',
    { skip: skipInShortRun },
    async () => {
      await load(file, to.settings)
      const before = await everything(to.sql)
      await assert.rejects(load(file, to.settings), /not empty/)
      assert.deepEqual(await everything(to.sql), before)
    },
  )

  it('a restore refuses a damaged archive before anything is changed', async () => {
    const bytes = await readFile(file)
    await writeFile(file, bytes.subarray(0, bytes.length - 20))
    await assert.rejects(load(file, to.settings), BackupError)
    assert.ok(await isEmpty())
  })

  it(
    'a restore refuses an archive of a later version, or with different migrations',
    { skip: skipInShortRun },
    async () => {
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
    },
  )

  it('a restore that fails in the middle leaves the database empty, and can be tried again', async () => {
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

  it(
    'a restore reports rows that PostgreSQL refuses, and leaves the database empty',
    { skip: skipInShortRun },
    async () => {
      const { manifest } = await readArchive(file)
      const output = createWriteStream(file)
      const writer = openArchiveWriter(output, new AbortController().signal)
      await writer.manifest(manifest)
      async function* rows(table: string): AsyncGenerator<Buffer> {
        if (table === 'member') yield Buffer.from('org_1\tuser_1\temperor\t2020-01-01\n')
      }
      for (const { name } of manifest.tables) await writer.table(name, rows(name), () => {})
      await writer.end()
      await assert.rejects(load(file, to.settings), {
        name: 'BackupError',
        message: /^PostgreSQL refused the rows of table member: .*member_role_check/,
      })
      assert.ok(await isEmpty())
    },
  )

  it('a restore whose connection ends leaves the database empty', { skip: skipInShortRun }, async () => {
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

  it('a service that starts during a restore waits, and then finds all data', { skip: skipInShortRun }, async () => {
    let migrating: Promise<unknown> | undefined
    await load(file, to.settings, {
      alter: async () => {
        migrating = migrate(to.sql)
        await eventually(async () => {
          const waiting =
            await to.sql`select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
        where l.locktype = 'advisory' and not l.granted`
          return waiting.length > 0
        })
      },
    })
    assert.deepEqual(await migrating, { applied: [] })
  })
})
