import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type pg from 'pg'
import { clientSql } from '../../server/src/platform/postgres/database.ts'
import { insertTestAgent } from '../../server/test/fixtures.ts'
import { eventually } from '../../server/test/harness.ts'
import { makeInstallations, otherKey, refuse, succeed, type Installations } from './installations.ts'
import { cadreScript, startCommand } from '../process.ts'

let installations: Installations
let folder: string
before(async () => {
  installations = await makeInstallations()
  folder = installations.folder
})
after(() => installations.close())

const embedded = (name: string): Record<string, string> => installations.embedded(name)
const external = () => installations.external()

describe('cadre backup', () => {
  let env: Record<string, string>
  let client: pg.Client
  before(async () => {
    ;({ env, client } = await external())
    env['CADRE_SECRET_KEY'] = otherKey
    await succeed(env, ['migrate'])
  })

  /** Its output is bytes. */
  const streaming = () =>
    spawn(process.execPath, [cadreScript, 'backup', '-o', '-'], {
      cwd: new URL('../..', import.meta.url).pathname,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })

  it('cadre backup and cadre restore report how many files are stored elsewhere', async () => {
    const file = join(folder, 'outside.tar.gz')
    const before = await succeed(env, ['backup', '-o', join(folder, 'inside.tar.gz')])
    assert.doesNotMatch(before.stderr, /object store/)
    const { project_id } = await insertTestAgent(clientSql(client))
    await client.query(
      `insert into file (id, project_id, name, media_type, bytes, sha256, store, created_by)
        select 'file_' || n, $1, 'x', 'text/plain', 3000000, 'x', 's3', 'user_1' from generate_series(1, 2) n`,
      [project_id],
    )
    const said = /^The contents of 2 files \(6\.0 MB\) are in the object store and not in the backup\./m
    assert.match((await succeed(env, ['backup', '-o', file])).stderr, said)
    const to = { ...embedded('outside'), CADRE_SECRET_KEY: otherKey }
    assert.match((await succeed(to, ['restore', file])).stderr, said)
  })

  it('cadre backup writes only the archive to standard output', async () => {
    const child = streaming()
    const chunks: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
    const [code] = await once(child, 'close')
    assert.equal(code, 0)
    await writeFile(join(folder, 'streamed.tar.gz'), Buffer.concat(chunks))
    await succeed({}, ['restore', '--check', join(folder, 'streamed.tar.gz')])
  })

  it('cadre backup fails if its output is not read to the end', async () => {
    // More than any buffer on the way.
    await client.query(`
      insert into audit (id, action, detail) select 'aud_' || n, 'test',
        jsonb_build_object('n', (select string_agg(md5(random()::text), '') from generate_series(1, 30 + n * 0))) from generate_series(1, 20000) n`)
    const child = streaming()
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    await once(child.stdout, 'data')
    child.stdout.destroy()
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    assert.match(said, /^Standard output was closed \(EPIPE\); the archive is incomplete\.$/m)
  })

  it('cadre backup replaces a file only with --force, and then only by a complete one', async () => {
    const file = join(folder, 'there.tar.gz')
    await writeFile(file, 'precious')
    await refuse(env, ['backup', '-o', file], /there\.tar\.gz already exists\. Use --force to replace it\./)
    assert.equal(await readFile(file, 'utf8'), 'precious')
    await succeed(env, ['backup', '-o', file, '--force'])
    await succeed({}, ['restore', '--check', file])
  })

  it('cadre backup that is interrupted leaves no file', async () => {
    const into = join(folder, 'interrupted')
    await mkdir(into)
    await client.query('begin; lock table task in access exclusive mode')
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const command = startCommand(env, ['backup', '-o', join(into, 'half.tar.gz')])
      await eventually(async () => {
        const { rowCount } = await client.query(
          `select from pg_locks where not granted and relation = 'task'::regclass`,
        )
        return rowCount === 1
      }, 30_000)
      assert.equal((await readdir(into)).length, 1, 'it has begun to be written')
      command.process.kill(signal)
      assert.equal((await command.ended).code, 130)
      assert.deepEqual(await readdir(into), [])
      await eventually(async () => {
        const { rowCount } = await client.query(
          `select from pg_locks where not granted and relation = 'task'::regclass`,
        )
        return rowCount === 0
      }, 30_000)
    }
    await client.query('rollback')
  })

  it('cadre backup reports errors in one sentence', async () => {
    await refuse(
      env,
      ['backup', '-o', join(folder, 'no', 'such', 'folder.tar.gz')],
      /cannot be written to \(ENOENT\)\.$/m,
    )
    await refuse(embedded('nothing'), ['backup'], /^There is no database in \S+\. Run/)
    const { env: empty } = await external()
    await refuse(
      { ...empty, CADRE_SECRET_KEY: otherKey },
      ['backup', '-o', join(folder, 'empty.tar.gz')],
      /has no tables of Cadre/,
    )
    await assert.rejects(stat(join(folder, 'empty.tar.gz')))
  })
})

describe('cadre restore', () => {
  it('cadre restore that is interrupted leaves the database empty, and can be done again', async () => {
    const { env: source } = await external()
    await succeed({ ...source, CADRE_SECRET_KEY: otherKey }, ['migrate'])
    const file = join(folder, 'again.tar.gz')
    await succeed({ ...source, CADRE_SECRET_KEY: otherKey }, ['backup', '-o', file])

    const { env, client } = await external()
    await client.query(`begin; select pg_advisory_xact_lock(hashtext('cadre migrations'))`)
    const waits = async (): Promise<number | null> =>
      (
        await client.query(`select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
        where l.locktype = 'advisory' and not l.granted`)
      ).rowCount
    const command = startCommand(env, ['restore', file])
    await eventually(async () => (await waits()) === 1, 30_000)
    command.process.kill('SIGINT')
    assert.equal((await command.ended).code, 130)
    await client.query('rollback')
    const { rows } = await client.query(`select relname from pg_class where relnamespace = 'public'::regnamespace`)
    assert.deepEqual(rows, [])
    await succeed(env, ['restore', file])
  })

  it('cadre restore reports an invalid file in one sentence, and creates nothing', async () => {
    const file = join(folder, 'text.tar.gz')
    await writeFile(file, 'nothing of the kind')
    await refuse(
      embedded('never made'),
      ['restore', file],
      /is damaged or not a backup of Cadre: .+\. Nothing was changed\.$/m,
    )
    await refuse(embedded('never made'), ['restore', join(folder, 'nowhere')], /cannot be read \(ENOENT\)\.$/m)
    await assert.rejects(stat(join(folder, 'never made')), { code: 'ENOENT' })
  })
})
