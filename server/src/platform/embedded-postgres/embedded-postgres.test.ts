import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { skipInShortRun } from '../../../test/long-run.ts'
import { lastError } from './cluster.ts'
import { EmbeddedPostgresError } from './error.ts'
import { Ended } from './ready.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres.ts'

const isRoot = process.getuid?.() === 0
const base = await mkdtemp(join(tmpdir(), 'cadre-pg-'))
if (isRoot) await chmod(base, 0o755)
/** Most tests share one cluster, which each leaves stopped, because making one is the slowest part. */
const usual = join(base, 'usual')
const children: ChildProcess[] = []
const servers: EmbeddedPostgres[] = []
const pids = new Set<number>()

afterEach(async () => {
  children.splice(0).forEach((child) => child.kill('SIGKILL'))
  for (const server of servers.splice(0)) await server.stop()
})
after(async () => {
  for (const pid of pids) if (await isServer(pid)) process.kill(pid, 'SIGKILL')
  await rm(base, { recursive: true, force: true, maxRetries: 10 })
})

const log = { info: (): void => {}, error: (): void => {} }

async function start(
  data_dir: string,
  options: Partial<Parameters<typeof startEmbeddedPostgres>[0]> = {},
): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ data_dir, log, ...options })
  servers.push(server)
  pids.add(server.pid)
  return server
}

async function query(server: Pick<EmbeddedPostgres, 'connection'>, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client(server.connection)
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** The server's response to another process of this account that requests a session of `user`. */
async function knock(
  { connection }: EmbeddedPostgres,
  { user, uid, gid }: { user: string; uid: number; gid: number },
): Promise<string> {
  // The first message of PostgreSQL's protocol, so that the process needs no package that its account may not read.
  const code = `
    const words = Buffer.from('user\\0${user}\\0database\\0${user}\\0\\0')
    const head = Buffer.alloc(8)
    head.writeInt32BE(8 + words.length, 0)
    head.writeInt32BE(196608, 4)
    const socket = require('node:net').connect('${String(connection.host)}/.s.PGSQL.5432')
    socket.write(Buffer.concat([head, words]))
    socket.once('data', (answer) => { console.log(String(answer)); socket.destroy() })
    socket.once('error', (error) => console.log(error.code))`
  const child = spawn(process.execPath, ['-e', code], {
    uid,
    gid,
    cwd: '/',
    env: {},
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  let said = ''
  child.stdout.setEncoding('latin1').on('data', (text: string) => (said += text))
  await once(child, 'close')
  return said
}

/** Polls `condition` until it holds; it may throw until then. */
async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const end_ms = performance.now() + 20_000
  while (!(await condition().catch(() => false))) {
    if (performance.now() > end_ms) assert.fail(`${what}: not within 20 s`)
    await sleep(20)
  }
}

/** Whether a PostgreSQL server has this process id. */
async function isServer(pid: number): Promise<boolean> {
  return /postgres\0-D\0/.test(await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''))
}

/** Starts another process that starts the server on `data_dir`, prints its process id, and runs `rest`. */
async function service(
  data_dir: string,
  rest = 'setInterval(() => {}, 60_000)',
): Promise<{ child: ChildProcess; pid: number }> {
  const module = new URL('./embedded-postgres.ts', import.meta.url).href
  const code = `import { startEmbeddedPostgres } from ${JSON.stringify(module)}
    const log = { info() {}, error() {} }
    const server = await startEmbeddedPostgres({ data_dir: ${JSON.stringify(data_dir)}, log })
    console.log(server.pid); ${rest}`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const [data] = (await once(child.stdout, 'data')) as [Buffer]
  const pid = Number(data.toString())
  pids.add(pid)
  return { child, pid }
}

async function killed(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL')
  await once(child, 'exit')
}

/**
 * One of the server's processes computes for two seconds. It notices the end of the server only after that, and uses its
 * shared memory until then.
 */
async function keepBusy(server: Pick<EmbeddedPostgres, 'connection'>): Promise<{ ended: Promise<unknown> }> {
  const ended = query(server, 'set statement_timeout = 2000; select count(*) from generate_series(1, 1e9)').catch(
    () => {},
  )
  const others = `select from pg_stat_activity where state = 'active' and query like 'set %1e9%' and pid <> pg_backend_pid()`
  await until(async () => (await query(server, others)).length === 1, 'a process is busy')
  return { ended }
}

describe('embedded PostgreSQL', { skip: process.platform === 'win32' }, () => {
  it('the embedded PostgreSQL makes a database at the first start, and keeps its rows after the second', async () => {
    const first = await start(usual)
    await query(first, 'create table kept (n int); insert into kept values (1)')
    await first.stop()
    assert.equal(await isServer(first.pid), false)
    const second = await start(usual)
    assert.deepEqual(await query(second, 'select n from kept'), [{ n: 1 }])
  })

  describe('while it runs', () => {
    /** One server for tests that only query it. */
    let server: EmbeddedPostgres
    before(async () => {
      process.env.CADRE_SECRET_KEY = 'canary'
      try {
        server = await startEmbeddedPostgres({ data_dir: usual, log })
        pids.add(server.pid)
      } finally {
        delete process.env.CADRE_SECRET_KEY
      }
    })
    after(() => server.stop())

    it('all durability settings of the embedded PostgreSQL are on', async () => {
      for (const name of ['fsync', 'synchronous_commit', 'full_page_writes', 'data_checksums']) {
        assert.deepEqual(await query(server, `show ${name}`), [{ [name]: 'on' }])
      }
    })

    it('the embedded PostgreSQL has upper and lower case of all letters, and sorts by code point', async () => {
      assert.deepEqual(
        await query(server, `select lower('ÄÉЖ') as low, 'Z' < 'a' as ordered, getdatabaseencoding() as encoding`),
        [{ low: 'äéж', ordered: true, encoding: 'UTF8' }],
      )
    })

    it('the embedded PostgreSQL listens only on a socket, in a folder that is closed to others', async () => {
      assert.deepEqual(await query(server, 'show listen_addresses'), [{ listen_addresses: '' }])
      assert.equal((await stat(String(server.connection.host))).mode & 0o777, 0o700)
      assert.equal((await stat(join(usual, 'postgres'))).mode & 0o777, 0o700)
    })

    it('SQL in the embedded PostgreSQL can access neither files nor programs', async () => {
      await assert.rejects(query(server, `select pg_read_file('/etc/passwd')`), /permission denied/)
      await assert.rejects(query(server, `copy kept from program 'id'`), /permission denied/)
      assert.deepEqual(await query(server, 'select rolsuper from pg_roles where rolname = current_user'), [
        { rolsuper: false },
      ])
    })

    it(
      'processes of the embedded PostgreSQL do not have the environment of the service',
      { skip: process.platform !== 'linux' },
      async () => {
        assert.doesNotMatch(await readFile(`/proc/${server.pid}/environ`, 'utf8'), /canary/)
      },
    )

    it('only the account of the service and root can connect, only over the socket, and not for replication', async () => {
      const owner = { ...server.connection, user: 'postgres' }
      const rules = await query(
        { connection: owner },
        `select type, database, user_name, auth_method, options from pg_hba_file_rules`,
      )
      assert.deepEqual(rules, [
        { type: 'local', database: ['all'], user_name: ['all'], auth_method: 'peer', options: ['map=cadre'] },
      ])
      const names = await query(
        { connection: owner },
        'select sys_name, pg_username, error from pg_ident_file_mappings',
      )
      const allowed = [...new Set([userInfo().username, 'root'])]
      assert.deepEqual(
        names,
        allowed.map((sys_name) => ({ sys_name, pg_username: 'all', error: null })),
      )
      for (const file of ['pg_hba.conf', 'pg_ident.conf', 'postmaster.pid'])
        assert.equal((await stat(join(usual, 'postgres', file))).mode & 0o777, 0o600, file)
      assert.equal((await stat(join(usual, 'socket', '.s.PGSQL.5432.lock'))).mode & 0o777, 0o600)
    })

    it(
      'if the service is root, other processes of the account of PostgreSQL cannot connect',
      { skip: !isRoot || process.platform !== 'linux' },
      async () => {
        const { uid, gid } = await stat(join(usual, 'postgres'))
        assert.notEqual(uid, 0)
        for (const user of ['cadre', 'postgres']) {
          const said = await knock(server, { user, uid, gid })
          assert.match(said, new RegExp(`Peer authentication failed for user "${user}"`), user)
        }
      },
    )
  })

  it(
    'the embedded PostgreSQL restarts after a kill, also while one of its processes is busy, without losing a commit',
    { skip: skipInShortRun },
    async () => {
      const server = await start(usual)
      const { pid } = server
      await query(server, 'create table survivors as select generate_series(1, 1000) as n')
      const busy = await keepBusy(server)
      process.kill(pid, 'SIGKILL')
      await until(
        async () => (await query(server, 'select count(*)::int as n from survivors'))[0]?.n === 1000,
        'the server is back',
      )
      assert.notEqual(server.pid, pid)
      pids.add(server.pid)
      await busy.ended
    },
  )

  it('the embedded PostgreSQL is restarted each time it ends', { skip: skipInShortRun }, async () => {
    const server = await start(usual)
    for (const round of [1, 2, 3]) {
      const { pid } = server
      process.kill(pid, 'SIGKILL')
      await until(
        async () => server.pid !== pid && (await query(server, 'select 1')).length === 1,
        `the server is back, round ${round}`,
      )
      pids.add(server.pid)
    }
  })

  it(
    'the embedded PostgreSQL is restarted as a whole if one of its processes is killed',
    { skip: skipInShortRun },
    async () => {
      const server = await start(usual)
      const { pid } = server
      const { ended } = await keepBusy(server)
      const others = `select pid from pg_stat_activity where state = 'active' and query like 'set %1e9%' and pid <> pg_backend_pid()`
      const [busy] = await query(server, others)
      process.kill(Number(busy!.pid), 'SIGKILL')
      await ended
      await until(
        async () => server.pid !== pid && (await query(server, 'select 1')).length === 1,
        'another server is there',
      )
      pids.add(server.pid)
    },
  )

  it('the embedded PostgreSQL can be stopped during a restart', async () => {
    const server = await start(usual)
    // Its process id may already be that of the next server.
    const { pid } = server
    process.kill(pid, 'SIGKILL')
    await until(async () => !(await isServer(pid)), 'the server died')
    await server.stop()
    await assert.rejects(query(server, 'select 1'), /ENOENT|ECONNREFUSED/)
  })

  it('the server of a killed service is adopted while it runs, and supervised from then on', async () => {
    const { child, pid } = await service(usual)
    await killed(child)
    assert.equal(await isServer(pid), true)
    const server = await start(usual)
    assert.equal(server.pid, pid)
    process.kill(pid, 'SIGKILL')
    await until(async () => server.pid !== pid && (await query(server, 'select 1')).length === 1, 'the server is back')
    pids.add(server.pid)
  })

  it('a server that was left running with other settings is replaced', async () => {
    const { child, pid } = await service(usual)
    await killed(child)
    const server = await start(usual, { settings: { work_mem: '8MB' } })
    assert.notEqual(server.pid, pid)
    assert.deepEqual(await query(server, 'show work_mem'), [{ work_mem: '8MB' }])
  })

  it('the embedded PostgreSQL shuts down if the service exits without stopping it', async () => {
    const { child, pid } = await service(usual, 'process.exit()')
    await once(child, 'exit')
    await until(async () => !(await isServer(pid)), 'the server is gone')
  })

  it('the embedded PostgreSQL shuts down if the service exits during its start', { skip: skipInShortRun }, async () => {
    const module = new URL('./embedded-postgres.ts', import.meta.url).href
    const code = `import { existsSync } from 'node:fs'
      import { startEmbeddedPostgres } from ${JSON.stringify(module)}
      startEmbeddedPostgres({ data_dir: ${JSON.stringify(usual)}, log: { info() {}, error() {} } })
      const file = ${JSON.stringify(join(usual, 'postgres', 'postmaster.pid'))}
      setInterval(() => existsSync(file) && process.exit(), 0)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'inherit' })
    children.push(child)
    await once(child, 'exit')
    await until(
      () =>
        stat(join(usual, 'postgres', 'postmaster.pid')).then(
          () => false,
          () => true,
        ),
      'the server is gone',
    )
  })

  it('the embedded PostgreSQL starts after a kill even if another process has the server’s process id', async () => {
    const { child, pid } = await service(usual)
    await killed(child)
    process.kill(pid, 'SIGKILL')
    await until(async () => !(await isServer(pid)), 'the server died')

    const file = join(usual, 'postgres', 'postmaster.pid')
    const { uid, gid } = await stat(file)
    const other = spawn('sleep', ['60'], { stdio: 'ignore', uid, gid })
    children.push(other)
    for (const path of [file, join(usual, 'socket', '.s.PGSQL.5432.lock')]) {
      await writeFile(path, (await readFile(path, 'utf8')).replace(/^\d+/, String(other.pid)))
    }
    const server = await start(usual)
    assert.deepEqual(await query(server, 'select n from kept'), [{ n: 1 }])
    assert.equal(other.exitCode, null)
  })

  it(
    'the embedded PostgreSQL starts after a kill even if one of its old processes is still busy',
    { skip: skipInShortRun },
    async () => {
      const { child, pid } = await service(usual)
      const { ended } = await keepBusy({
        connection: { host: join(usual, 'socket'), user: 'cadre', database: 'cadre' },
      })
      await killed(child)
      process.kill(pid, 'SIGKILL')
      const server = await start(usual)
      assert.deepEqual(await query(server, 'select n from kept'), [{ n: 1 }])
      await ended
    },
  )

  it('the embedded PostgreSQL makes a new cluster after an interrupted first start', async () => {
    const folder = join(base, 'interrupted')
    await mkdir(join(folder, 'postgres.new-0123', 'base'), { recursive: true })
    const server = await start(folder, { settings: { fsync: 'off' } })
    assert.deepEqual(await query(server, 'show fsync'), [{ fsync: 'off' }])
    assert.deepEqual((await readdir(folder)).sort(), ['postgres', 'postgres.log', 'socket'])
  })

  it('the embedded PostgreSQL works in a folder whose path is too long for a socket, and in one with spaces and quotes', async () => {
    const folder = join(base, `a "quoted", 'long' folder ${'x'.repeat(100)}`)
    const server = await start(folder)
    assert.match(String(server.connection.host), /^\/tmp\/cadre-\d+-[0-9a-f]{16}$/)
    assert.deepEqual(await query(server, 'select 1 as n'), [{ n: 1 }])
    await server.stop()
    await rm(String(server.connection.host), { recursive: true })
  })

  it(
    'the embedded PostgreSQL works for root below a folder that only root may enter',
    { skip: !isRoot || process.platform !== 'linux' },
    async () => {
      await mkdir(join(base, 'closed'), { mode: 0o700 })
      const folder = join(base, 'closed', 'data')
      const server = await start(folder)
      assert.deepEqual(await query(server, 'select 1 as n'), [{ n: 1 }])
      assert.notEqual((await stat(join(folder, 'postgres'))).uid, 0)
    },
  )

  it('the error of a failed start has the last error of the log with its detail, and what to do on a full disk', () => {
    const full =
      'LOG:  starting\nFATAL:  could not write to file "pg_wal/x": No space left on device\nLOG:  shutting down\n'
    assert.equal(lastError(full), 'could not write to file "pg_wal/x": No space left on device')
    assert.match(
      new Ended(lastError(full)).explained().message,
      /No space left on device\. Free space on its disk\. Or set/,
    )
    assert.equal(lastError('FATAL:  no\nDETAIL:  Because.\n'), 'no (Because)')
    assert.equal(lastError('nothing of the kind.'), 'nothing of the kind')
  })

  it('a start that fails has an error of one line with the reason', async () => {
    const file = join(usual, 'postgres', 'PG_VERSION')
    const version = await readFile(file, 'utf8')
    await writeFile(file, '12\n')
    try {
      await assert.rejects(start(usual), (error) => {
        assert.ok(error instanceof EmbeddedPostgresError)
        assert.match(
          error.message,
          /^PostgreSQL did not start: database files are incompatible with server \(The data directory was initialized by PostgreSQL version 12, which is not compatible with this version [\d.]+\)\. Run the version .* into a new folder\. Or set DATABASE_URL/,
        )
        return true
      })
    } finally {
      await writeFile(file, version)
    }
  })

  it('an aborted start of the embedded PostgreSQL leaves no process running', async () => {
    const folder = join(base, 'called-off')
    await assert.rejects(start(folder, { signal: AbortSignal.timeout(1) }), { name: 'TimeoutError' })
    const text = await readFile(join(folder, 'postgres', 'postmaster.pid'), 'utf8').catch(() => '')
    assert.equal(text, '')
  })
})
