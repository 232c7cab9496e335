import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { eventually, makeTestDatabase, sender } from '../../server/test/harness.ts'
import {
  databaseEnvironment,
  refusedStart,
  type RunningService,
  runCommand,
  startCommand,
  startProcess,
  temporaryFolder,
} from '../process.ts'

const email = 'owner@cadre.local'

async function signIn(url: string, password: string): Promise<{ status: number; cookie: string }> {
  const { status, headers } = await sender(url, '')('POST', '/api/v1/auth/login', {
    key: null,
    body: { email, password },
  })
  return { status, cookie: headers.getSetCookie()[0]?.split(';')[0] ?? '' }
}

describe('a command line', () => {
  it('a command line without a command, or with --help, lists all commands, and --version prints the version', async () => {
    const none = await runCommand({}, [])
    const help = await runCommand({}, ['--help'])
    const version = await runCommand({}, ['--version'])
    assert.deepEqual([none.code, none.stderr, none.stdout], [0, '', help.stdout])
    for (const name of ['serve', 'migrate', 'config', 'admin', 'agents', 'login'])
      assert.match(none.stdout, new RegExp(`^  ${name} {2,}\\S`, 'm'))
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/)
  })

  it('a command line with a usage error ends with 2, and suggests on standard error what was meant', async () => {
    const lines = [
      [['migrat'], /unknown command 'migrat'\n\(Did you mean migrate\?\)/],
      [['config', 'chekc'], /unknown command 'chekc'\n\(Did you mean check\?\)/],
      [['config'], /^Usage: cadre config [^]* {2}check {2,}Check the settings/],
      [['config', 'check', '--jsno'], /unknown option '--jsno'\n\(Did you mean --json\?\)/],
      [['migrate', 'now'], /too many arguments for 'migrate'/],
      [['admin', 'reset-password'], /missing required argument 'email'\nSee `cadre admin reset-password --help`\./],
    ] as const
    for (const [values, expected] of lines) {
      const { code, stdout, stderr } = await runCommand({}, values)
      assert.deepEqual([code, stdout], [2, ''], values.join(' '))
      assert.match(stderr, expected)
    }
  })

  it('a command line is explained for every command by --help, which does nothing else', async () => {
    const { code, stdout } = await runCommand({ CADRE_DATA_DIR: '/nowhere' }, ['migrate', 'status', '--help'])
    assert.equal(code, 0)
    assert.match(stdout, /^Usage: cadre migrate status \[options\]\n[^]*--json[^]*\n {2}3 +Migrations are pending\.\n/)
  })
})

describe('cadre config check', () => {
  it('cadre config check lists every setting with its source, and shows no secret', async () => {
    const { code, stdout, stderr } = await runCommand(
      { OPENAI_API_KEY: 'sk-canary', CADRE_WORKER_SLOTS: '7', CADRE_LOG_LEVLE: 'info' },
      ['config', 'check'],
    )
    assert.equal(code, 0)
    assert.match(stdout, /^ {2}CADRE_WORKER_SLOTS +7 +environment$/m)
    assert.match(stdout, /^ {2}OPENAI_API_KEY +set +environment$/m)
    assert.match(stdout, /^ {2}HOST +127\.0\.0\.1 +default$/m)
    assert.match(stderr, /^CADRE_LOG_LEVLE is not a setting and is ignored; did you mean CADRE_LOG_LEVEL\?$/m)
    assert.doesNotMatch(stdout + stderr, /canary/)
  })

  it('cadre config check ends with 1 and lists all errors, also as JSON', async () => {
    const env = { PORT: 'http', CADRE_SECRET_KEY: 'canary', OPENAI_API_KEY_FILE: '/nowhere/key' }
    const { code, stdout, stderr } = await runCommand(env, ['config', 'check'])
    assert.equal(code, 1)
    assert.match(stdout, /^ {2}PORT +http +environment {2}ERROR: "http" is not allowed$/m)
    for (const name of ['PORT', 'CADRE_SECRET_KEY', 'OPENAI_API_KEY_FILE'])
      assert.match(stderr, new RegExp(`^${name}: .+ Allowed: .+$`, 'm'))
    const json = await runCommand(env, ['config', 'check', '--json'])
    const said = JSON.parse(json.stdout)
    assert.deepEqual([json.code, said.valid, said.faults.length], [1, false, 3])
    assert.deepEqual(
      said.settings.filter(({ name }: { name: string }) => ['CADRE_SECRET_KEY', 'OPENAI_API_KEY'].includes(name)),
      [
        {
          section: 'Data',
          name: 'CADRE_SECRET_KEY',
          value: 'set',
          is_secret: true,
          source: 'environment',
          fault: 'the value is not allowed',
        },
        {
          section: 'Models',
          name: 'OPENAI_API_KEY',
          value: 'set',
          is_secret: true,
          source: 'file',
          file: '/nowhere/key',
          fault: '"/nowhere/key" cannot be read (ENOENT)',
        },
      ],
    )
    assert.doesNotMatch(stdout + stderr + json.stdout, /canary/)
  })
})

describe('commands on a PostgreSQL of the operator’s', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let env: Record<string, string>
  let client: pg.Client
  before(async () => {
    database = await makeTestDatabase()
    env = databaseEnvironment(database.connection)
    client = new pg.Client(database.connection)
    await client.connect()
    await client.query('drop schema public cascade; create schema public')
  })
  after(async () => {
    await client.end()
    await database.drop()
  })

  it('a migration that is interrupted leaves nothing behind', async () => {
    await client.query(`begin; select pg_advisory_xact_lock(hashtext('cadre migrations'))`)
    const command = startCommand(env, ['migrate'])
    await eventually(async () => {
      const { rowCount } =
        await client.query(`select 1 from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
        where l.locktype = 'advisory' and not l.granted`)
      return rowCount === 1
    }, 30_000)
    command.process.kill('SIGINT')
    assert.deepEqual(await command.ended, { code: 130, stdout: '', stderr: '' })
    await client.query('rollback')
    const { rows } = await client.query(`select to_regclass('schema_migration') as made`)
    assert.deepEqual(rows, [{ made: null }])
  })

  it('pending migrations are listed with exit code 3, applied by `migrate`, and then listed as applied', async () => {
    const before = await runCommand(env, ['migrate', 'status'])
    assert.equal(before.code, 3)
    assert.match(before.stdout, /^pending +0001_control_plane\.sql$/m)

    const migrated = await runCommand(env, ['migrate'])
    assert.equal(migrated.code, 0, migrated.stderr)
    assert.match(migrated.stdout, /^applied 0001_control_plane\.sql\n[^]*The database is up to date now\.\n$/)
    assert.match((await runCommand(env, ['migrate'])).stdout, /^The database is up to date\.\n$/)

    const status = await runCommand(env, ['migrate', 'status', '--json'])
    const { applied, pending } = JSON.parse(status.stdout)
    assert.deepEqual([status.code, pending, applied[0].name], [0, [], '0001_control_plane.sql'])
  })

  it('a database that is behind is not touched by a command that works on its data', async () => {
    await client.query('begin; alter table schema_migration rename to put_away; commit')
    const { code, stderr } = await runCommand(env, ['admin', 'reset-password', email, '--generate'])
    await client.query('alter table put_away rename to schema_migration')
    assert.equal(code, 1)
    assert.match(stderr, /^The database lacks \d+ migrations of this version\. Run `cadre migrate`\.$/m)
  })

  it('a database that is ahead is refused, by the service too', async () => {
    await client.query(`insert into schema_migration (version, name, hash) values (9999, '9999_future.sql', '')`)
    const ahead = /^The database is ahead of this build: it has migration 9999_future\.sql, .+\n$/
    for (const args of [['migrate'], ['migrate', 'status'], ['admin', 'reset-password', email]]) {
      const { code, stdout, stderr } = await runCommand(env, args)
      assert.deepEqual([code, stdout], [1, ''], args.join(' '))
      assert.match(stderr, ahead)
    }
    const { code, output } = await refusedStart(env)
    assert.equal(code, 1)
    assert.match(output, ahead)
  })

  it('an unreachable database is reported in one sentence, without the password of its URL', async () => {
    const DATABASE_URL = 'postgres://cadre:canary@127.0.0.1:1/cadre'
    const unreachable = { ...env, DATABASE_URL, CADRE_DATABASE_WAIT_SECONDS: '0' }
    for (const args of [['migrate', 'status'], ['serve']]) {
      const { code, stderr } = await runCommand(unreachable, args)
      assert.equal(code, 1)
      assert.equal(stderr, 'The database of DATABASE_URL cannot be reached: connect ECONNREFUSED 127.0.0.1:1.\n')
    }
  })

  it('the service waits for an unreachable database, and logs that every 5 s', async () => {
    const DATABASE_URL = 'postgres://cadre:canary@127.0.0.1:1/cadre'
    const waits = { ...env, DATABASE_URL, CADRE_DATABASE_WAIT_SECONDS: '9', CADRE_LOG_LEVEL: 'warn' }
    const starts = [['serve'], ['serve', '--processes', '2']].map((args) => runCommand(waits, args))
    for (const { code, stdout, stderr } of await Promise.all(starts)) {
      assert.equal(code, 1)
      assert.match(stderr, /cannot be reached: connect ECONNREFUSED 127.0.0.1:1. The start gave up after 9 s/)
      const said = stderr.split('\n').filter((line) => line.includes('Retrying'))
      const waited = said.map((line): number => JSON.parse(line).waited_seconds)
      // At 0 and 5 s, or up to 4 s later on a busy machine.
      assert.ok(waited.length >= 2, stderr)
      for (const [at, seconds] of waited.slice(1).entries()) assert.ok(seconds - waited[at]! >= 5, String(waited))
      assert.doesNotMatch(stdout + stderr, /canary/)
    }
  })
})

describe('commands on the embedded database', () => {
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let env: Record<string, string>
  before(async () => {
    folder = await temporaryFolder()
    env = {
      CADRE_DATA_DIR: `${folder.path}/data`,
      CADRE_ADMIN_EMAIL: email,
      CADRE_ADMIN_PASSWORD: 'the first pass-phrase',
    }
  })
  after(() => folder.remove())

  it('only `migrate` creates a missing database', async () => {
    for (const args of [
      ['migrate', 'status'],
      ['admin', 'reset-password', email, '--generate'],
    ]) {
      const { code, stderr } = await runCommand(env, args)
      assert.equal(code, 1)
      assert.match(stderr, /^There is no database in \S+\. Run `cadre serve` to create one,/)
    }
    const migrated = await runCommand(env, ['migrate'])
    assert.equal(migrated.code, 0, migrated.stderr)
    assert.equal((await runCommand(env, ['migrate', 'status'])).code, 0)
  })

  it('`migrate` is refused while a service uses the database, with the process in the error', async () => {
    await serving(async (service) => {
      const { code, stdout, stderr } = await runCommand(env, ['migrate'])
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(stderr, new RegExp(`^The data folder \\S+ is in use by process ${service.process.pid}, `))
      assert.equal((await runCommand(env, ['migrate', 'status'])).code, 0)
    })
  })

  it('a password is reset while the service runs: the old one and all sessions stop working', async () => {
    await serving(async ({ url }) => {
      const before = await signIn(url, 'the first pass-phrase')
      assert.equal(before.status, 200)
      const send = sender(url, '')
      assert.equal((await send('GET', '/api/v1/auth/user', { cookie: before.cookie })).status, 200)

      const refused = await runCommand(env, ['admin', 'reset-password', email], 'password1234\n')
      assert.equal(refused.code, 1)
      assert.match(refused.stderr, /^The password is one of the most common passwords\.$/m)
      assert.equal((await send('GET', '/api/v1/auth/user', { cookie: before.cookie })).status, 200)

      const { code, stdout, stderr } = await runCommand(
        env,
        ['admin', 'reset-password', email.toUpperCase()],
        'the second pass-phrase\n',
      )
      assert.deepEqual([code, stdout], [0, ''], stderr)
      assert.match(stderr, /was set; 1 session ended\.$/m)
      assert.equal((await send('GET', '/api/v1/auth/user', { cookie: before.cookie })).status, 401)
      assert.equal((await signIn(url, 'the first pass-phrase')).status, 401)
      assert.equal((await signIn(url, 'the second pass-phrase')).status, 200)
    })
  })

  it('a password is reset while no service runs, and the generated one is the only output', async () => {
    const { code, stdout, stderr } = await runCommand(env, ['admin', 'reset-password', email, '--generate'])
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^[0-9a-z]{5}(-[0-9a-z]{5}){3}\n$/)
    await serving(async ({ url }) => {
      assert.equal((await signIn(url, 'the second pass-phrase')).status, 401)
      assert.equal((await signIn(url, stdout.trim())).status, 200)
    })
  })

  it('a reset without a password, or for a missing user, changes nothing', async () => {
    const nothing = await runCommand(env, ['admin', 'reset-password', email], '\n')
    assert.deepEqual([nothing.code, nothing.stderr], [1, 'No new password was given.\n'])
    const unknown = await runCommand(env, ['admin', 'reset-password', 'unknown@example.com'], 'the third pass-phrase\n')
    assert.deepEqual([unknown.code, unknown.stderr], [1, 'No active user has the email address unknown@example.com.\n'])
  })

  async function serving(work: (service: RunningService) => Promise<void>): Promise<void> {
    const service = await startProcess(env)
    try {
      await work(service)
    } finally {
      assert.deepEqual(await service.end(), { code: 0, signal: null })
    }
  }
})
