import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { copyTemplate, findTemplate, makeTemplate } from './template.ts'
import { startEmbeddedPostgres, type EmbeddedPostgresOptions } from './embedded-postgres.ts'

const log = { info: (): void => {}, error: (): void => {} }
const base = await mkdtemp(join(tmpdir(), 'cadre-template-'))
if (process.getuid?.() === 0) await chmod(base, 0o755)
const templates = join(base, 'templates')

/** Starts a server, queries it, and stops it. */
async function ask(options: Partial<EmbeddedPostgresOptions> & { data_dir: string }, text: string): Promise<unknown[]> {
  const server = await startEmbeddedPostgres({ log, ...options })
  try {
    return await query(server.connection, text)
  } finally {
    await server.stop()
  }
}

async function query(connection: pg.ClientConfig, text: string): Promise<unknown[]> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Everything that `initdb` and its options determine. */
const nature = `
  select
    (select jsonb_agg(d order by d.datname) from (
      select datname, encoding, datlocprovider, datlocale, datcollate, datctype, pg_get_userbyid(datdba) as owner from pg_database) d) as databases,
    (select jsonb_agg(r order by r.rolname) from (select rolname, rolsuper, rolcreatedb, rolcanlogin from pg_roles) r) as roles,
    (select jsonb_agg(s order by s.name) from (
      select name, setting from pg_settings
      where source = 'configuration file' or name in ('data_checksums', 'wal_level', 'fsync', 'full_page_writes', 'synchronous_commit')) s) as settings,
    (select jsonb_agg(h) from (select type, database, user_name, auth_method from pg_hba_file_rules order by rule_number) h) as access`

describe('a prepared cluster', () => {
  before(() =>
    makeTemplate(async (connection) => void (await query(connection, 'create table made (n int)')), templates),
  )
  after(() => rm(base, { recursive: true, force: true, maxRetries: 10 }))

  const ways: string[] = []
  const copy: EmbeddedPostgresOptions['copy'] = async (folder, account) => {
    const way = await copyTemplate((await findTemplate(templates))!, folder, account)
    ways.push(way)
    return way
  }

  it('the first start moves the prepared cluster into place and others copy it, complete, private and equal to a new one', async () => {
    const [moved, copied] = [join(base, 'moved'), join(base, 'copied')]
    for (const data_dir of [moved, copied]) {
      assert.deepEqual(await ask({ data_dir, copy }, 'select count(*)::int as n from made'), [{ n: 0 }])
      assert.equal((await stat(join(data_dir, 'postgres'))).mode & 0o077, 0)
    }
    assert.deepEqual(ways, ['synced', 'written'])
    // As the superuser: PostgreSQL shows its access rules to no other role.
    const as = async (data_dir: string): Promise<unknown[]> => {
      const server = await startEmbeddedPostgres({ data_dir, log })
      try {
        return await query({ ...server.connection, user: 'postgres' }, nature)
      } finally {
        await server.stop()
      }
    }
    const made = await as(join(base, 'made'))
    assert.deepEqual(await as(moved), made)
    assert.deepEqual(await as(copied), made)
  })

  it('a service keeps its rows at the next start, because the prepared cluster is copied only once', async () => {
    const data_dir = join(base, 'kept')
    await ask({ data_dir, copy }, 'insert into made values (7)')
    assert.deepEqual(await ask({ data_dir, copy }, 'select n from made'), [{ n: 7 }])
  })

  it('a cluster is made with initdb if copying the prepared one fails half-way', async () => {
    const half: EmbeddedPostgresOptions['copy'] = async (folder, account) => {
      await copyTemplate((await findTemplate(templates))!, folder, account)
      await writeFile(join(folder, 'half'), 'of it')
      throw new Error('the disk is full')
    }
    const found = await ask({ data_dir: join(base, 'half'), copy: half }, `select to_regclass('made') as made`)
    assert.deepEqual(found, [{ made: null }])
    await assert.rejects(stat(join(base, 'half', 'postgres', 'half')), { code: 'ENOENT' })
  })

  it('a prepared cluster that is too old for its partitions is not used', async () => {
    const template = (await findTemplate(templates))!
    const days = (n: number): Date => new Date(Date.now() - n * 86_400_000)
    await utimes(join(template, 'PG_VERSION'), days(31), days(31))
    assert.equal(await findTemplate(templates), undefined)
    await utimes(join(template, 'PG_VERSION'), days(29), days(29))
    assert.equal(await findTemplate(templates), template)
  })
})
