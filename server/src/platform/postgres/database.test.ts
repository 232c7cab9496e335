import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeTestDatabase } from '../../../test/harness.ts'
import { openDatabase, type Database, type Sql } from './database.ts'

let test: Awaited<ReturnType<typeof makeTestDatabase>>
let database: Database
before(async () => {
  test = await makeTestDatabase()
  database = openDatabase({ connection: test.connection, connectionsMax: 1 })
  await database.sql.script('create table thing (id int primary key)')
})
after(async () => {
  await database.close()
  await test.drop()
})

const count = async (): Promise<unknown> => (await database.sql`select count(*) as n from thing`)[0]?.n

describe('a transaction', () => {
  it('a transaction that a swallowed error rolled back is never reported as committed', async () => {
    const work = database.sql.begin(async (tx) => {
      await tx`insert into thing values (1)`
      await tx`insert into thing values (1)`.catch(() => {})
    })
    await assert.rejects(work, /was rolled back/)
    assert.equal(await count(), 0)
  })

  it('a transaction commits the rest after an error was caught around a savepoint', async () => {
    await database.sql.begin(async (tx) => {
      await tx`insert into thing values (2)`
      await tx.begin((inner) => inner`insert into thing values (2)`).catch(() => {})
    })
    assert.equal(await count(), 1)
  })

  it('a transaction stays committed, and its connection usable, if a listener of the commit throws', async () => {
    const work = database.sql.begin(async (tx) => {
      await tx`insert into thing values (3)`
      tx.afterCommit(() => {
        throw new Error('the listener fails')
      })
    })
    await assert.rejects(work, /the listener fails/)
    assert.equal(await count(), 2)
    assert.equal(database.pool.idleCount, 1)
  })

  it('a transaction includes statements of leave, and calls listeners of the commit after them', async () => {
    const order: string[] = []
    await database.sql.begin(async (tx) => {
      const slow = tx`with waited as materialized (select pg_sleep(0.05)) insert into thing select 4 from waited`
      await tx.leave([slow.then(() => order.push('made'))])
      tx.afterCommit(() => order.push('committed'))
    })
    assert.deepEqual(order, ['made', 'committed'])
    assert.equal(await count(), 3)
  })

  for (const kind of [undefined, 'indexed', 'locksFirst'] as const)
    it(`a transaction is rolled back if a statement of leave fails, and throws its error (${kind ?? 'usual'})`, async () => {
      const undone: string[] = []
      const work = database.sql.begin(async (tx) => {
        tx.afterRollback(() => undone.push('undone'))
        tx.afterCommit(() => undone.push('committed'))
        await tx`select id from thing for update`
        await tx.leave([tx`insert into thing values (5)`, tx`insert into thing values (2)`])
      }, kind)
      await assert.rejects(work, /duplicate key/)
      assert.deepEqual(undone, ['undone'])
      assert.equal(await count(), 3)
    })

  it('a transaction throws the error of the first failed statement of leave, not of one after it', async () => {
    const work = database.sql.begin(async (tx) => {
      await tx.leave([tx`insert into thing values (2)`])
      await tx`select 1`
    })
    await assert.rejects(work, /duplicate key/)
    assert.equal(await count(), 3)
  })

  it('a transaction whose connection ends when it gets it fails, and the next one has another connection', async () => {
    const message = Buffer.from('SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')
    const length = Buffer.alloc(4)
    length.writeInt32BE(message.length + 4)
    // The pool has released the connection, and the next transaction starts in a later microtask.
    database.pool.once('acquire', (client) =>
      queueMicrotask(() => client.connection.stream.emit('data', Buffer.concat([Buffer.from('E'), length, message]))),
    )
    await assert.rejects(database.sql.begin((tx) => tx`select 1`))
    assert.deepEqual(await database.sql.begin((tx) => tx`select 1 as n`), [{ n: 1 }])
  })

  it('a savepoint is rolled back if a statement of leave fails in it', async () => {
    await database.sql.begin(async (tx) => {
      await tx`insert into thing values (6)`
      await assert.rejects(
        tx.begin((inner) => inner.leave([inner`insert into thing values (2)`])),
        /duplicate key/,
      )
    })
    assert.equal(await count(), 4)
  })
})

describe('a timestamp', () => {
  it('a timestamp is returned in ISO 8601 with milliseconds in UTC, however PostgreSQL writes it', async () => {
    const [times] = await database.sql`
      select '2026-11-23 09:30:00+00'::timestamptz as whole, '2026-11-23 11:30:00.1+02'::timestamptz as tenth,
        '2026-11-23 09:30:00.129999+00'::timestamptz as cut, '0001-01-01 00:00:00+00'::timestamptz as old,
        '12026-11-23 09:30:00.5+00'::timestamptz as far`
    assert.deepEqual(times, {
      whole: '2026-11-23T09:30:00.000Z',
      tenth: '2026-11-23T09:30:00.100Z',
      cut: '2026-11-23T09:30:00.129Z',
      old: '0001-01-01T00:00:00.000Z',
      far: '+012026-11-23T09:30:00.500Z',
    })
  })
})

describe('a connection', () => {
  it('a connection has both its timeouts and the options of its URL', async () => {
    const { user, password, host, port, database: name } = test.connection
    const url = new URL('postgres://localhost')
    url.username = String(user)
    url.password = String(password ?? '')
    url.pathname = `/${name}`
    const options = '-c statement_timeout=0 -c search_path=elsewhere'
    for (const [key, value] of Object.entries({ host, port, options })) url.searchParams.set(key, String(value))
    const other = openDatabase({ connection: url.href, connectionsMax: 1, synchronous_commit: 'off' })
    const [row] = await other.sql`
      select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
        current_setting('timezone') as zone, current_setting('synchronous_commit') as commits,
        current_setting('search_path') as path`
    await other.close()
    assert.deepEqual(row, { statement: '4s', lock: '3s', zone: 'UTC', commits: 'off', path: 'elsewhere' })
  })

  it('no connection compiles statements, whatever the server does by default', async () => {
    const { connection } = test
    const other = openDatabase({ connection: { ...connection, options: '-c jit=on' }, connectionsMax: 1 })
    const jit = async (sql: Sql) => (await sql<{ jit: string }>`show jit`)[0]!.jit
    const found = [await jit(other.sql), await jit(other.indexed)]
    await other.close()
    assert.deepEqual(found, ['off', 'off'])
  })

  it('a script may take its own timeout, not only that of a request', async () => {
    const own = openDatabase({ connection: test.connection, connectionsMax: 1 })
    await assert.rejects(own.sql.script('select pg_sleep(0.3)', 20), /timeout/)
    await own.sql.script('select pg_sleep(0.1)', 60_000)
    await own.close()
  })
})
