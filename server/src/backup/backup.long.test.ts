import assert from 'node:assert/strict'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, afterEach, before, describe, it } from 'node:test'
import { insertTestAgent } from '../../test/fixtures.ts'
import { everything, fillDatabase, load, save, testDatabases } from '../../test/backups.ts'
import { eventually } from '../../test/harness.ts'
import { openConnection } from '../platform/postgres/connection.ts'
import type { Database } from '../platform/postgres/database.ts'
import { dropPartition, ensurePartitions } from '../platform/postgres/partitions.ts'
import { readArchive } from './archive-reader.ts'
import { backUp } from './back-up.ts'
import { BackupError } from './backup-error.ts'

const { source, target, closing, close } = testDatabases()
let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-backup-'))
})
after(() => rm(folder, { recursive: true, force: true }))
afterEach(close)

describe('a backup', () => {
  /** A database whose first table is larger than all buffers between PostgreSQL and the output. */
  const large = async (): Promise<Database> => {
    const from = await source()
    const { agent_id } = await fillDatabase(from.sql)
    const patient = await openConnection({ connection: from.settings })
    closing.push(patient.close)
    await patient.sql`
      insert into agent_log (id, agent_id, level, message)
      select 'log_' || n, ${agent_id}, 'info', (select string_agg(md5(random()::text), '') from generate_series(1, 20 + n * 0)) from generate_series(1, 40000) n`
    return from
  }
  /** Writes to a file, and runs a callback after the first piece of the archive and before the next. */
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

  it('a backup is a consistent snapshot, and blocks no writer', async () => {
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

  it('a backup delays making and dropping partitions, without blocking requests', async () => {
    const [from, file] = [await large(), join(folder, 'partitions.tar.gz')]
    // A table that is read later was already locked before the first read.
    const old = { table: 'task_event', name: 'task_event_202002' }
    await from.sql.script(`
      create table task_event_202002 partition of task_event
        for values from (id_floor('task', '2020-02-01')) to (id_floor('task', '2020-03-01'))`)
    let wasDropped: boolean | undefined
    const output = interrupted(file, async () => {
      wasDropped = await dropPartition(from.sql, old)
      await assert.rejects(ensurePartitions(from.sql, 100), { code: '55P03' })
    })
    await backUp({ ...options, connection: from.settings, output })
    assert.equal(wasDropped, false)
    assert.equal(await dropPartition(from.sql, old), true)
    await ensurePartitions(from.sql, 100)
  })

  it('a backup whose connection breaks fails, and leaves no file that looks like an archive', async () => {
    const [from, file] = [await large(), join(folder, 'killed.tar.gz')]
    const output = interrupted(file, async () => {
      await from.sql`
        select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'cadre backup' and datname = current_database()`
    })
    await assert.rejects(backUp({ ...options, connection: from.settings, output }), /PostgreSQL ended the backup: /)
    await assert.rejects(readArchive(file), BackupError)
  })

  it('an aborted backup ends at once, whatever it waits for', async () => {
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
    stop.abort(new Error('stopped by the test'))
    await assert.rejects(saving, /stopped by the test/)
    await eventually(async () => !(await waits()))
  })

  it('a backup refuses a database without tables, and one that is ahead of this build', async () => {
    const [nothing, later] = [await target(), await source()]
    await assert.rejects(save(nothing.settings, join(folder, 'none.tar.gz')), /there is nothing to back up/)
    await later.sql`insert into schema_migration (version, name, hash) values (9999, '9999_later.sql', '')`
    await assert.rejects(save(later.settings, join(folder, 'none.tar.gz')), /ahead of this build/)
  })
})
