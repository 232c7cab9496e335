import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeTestDatabase } from '../../../test/harness.ts'
import { toProblem } from '../../http/errors.ts'
import { isTransient, jsonb, openDatabase, type Database } from './database.ts'

let test: Awaited<ReturnType<typeof makeTestDatabase>>
let database: Database
before(async () => {
  test = await makeTestDatabase()
  // One connection, so that every statement but the first has been prepared.
  database = openDatabase({ connection: test.connection, connectionsMax: 1 })
  await database.sql.script(
    'create table thing (id int primary key, at timestamptz, words text[], data jsonb, size int8)',
  )
})
after(async () => {
  await database.close()
  await test.drop()
})

// 60 ms together.
describe('a prepared statement', () => {
  it('a prepared statement returns the same rows each time, in the pool and in transactions', async () => {
    const { sql } = database
    const insert = (id: number, data: unknown) =>
      sql`insert into thing values (${id}, ${'2026-01-02T03:04:05.678Z'}, ${['a', 'b"']}, ${jsonb(data)}::jsonb, ${'9007199254740991'})`
    const read = (from: number, by = sql) =>
      by`select *, null as nothing, id as id from thing where id >= ${from} order by id`
    await insert(1, { n: [1, null] })
    await insert(2, null)
    const row = (id: number, data: unknown) => ({
      id,
      at: '2026-01-02T03:04:05.678Z',
      words: ['a', 'b"'],
      data,
      size: 9007199254740991,
      nothing: null,
    })
    const all = [row(1, { n: [1, null] }), row(2, null)]
    for (let round = 0; round < 3; round++) {
      assert.deepEqual(await read(1), all)
      assert.deepEqual(await read(2), all.slice(1))
      assert.deepEqual(await read(3), [])
      assert.deepEqual(await Promise.all([read(1), read(3), read(2)]), [all, [], all.slice(1)])
      assert.deepEqual(await sql.begin((tx) => Promise.all([read(2, tx), read(1, tx)])), [all.slice(1), all])
    }
    const [first] = await read(1)
    first!['id'] = 99
    assert.deepEqual((await read(1))[0], all[0])
  })

  it('a prepared statement works again after an error, and after a value that cannot be sent', async () => {
    const { sql } = database
    const divide = async (by: unknown) => (await sql<{ result: number }>`select 6 / ${by}::int as result`)[0]!.result
    const circle: Record<string, unknown> = {}
    circle['self'] = circle
    for (let round = 0; round < 3; round++) {
      assert.equal(await divide(2), 3)
      await assert.rejects(divide(0), (error: Error & { code?: string }) => error.code === '22012')
      await assert.rejects(divide(circle), /circular/i)
    }
    assert.equal(await divide(3), 2)
  })

  it('a prepared statement of all columns works after a migration has added one', async () => {
    const { sql } = database
    const read = (by = sql) => by`select * from thing where id = 1`
    const change = (by = sql) => by`update thing set size = size - 1 where id = 1 returning *`
    await read()
    await change()
    await sql.script("alter table thing add column more text not null default 'more'")
    assert.equal((await read())[0]!['more'], 'more')
    assert.equal((await sql.begin(async (tx) => (await change(tx))[0]))!['more'], 'more')
    assert.equal((await read())[0]!['more'], 'more')
  })

  it('a transaction whose statement a migration made stale fails once, with a transient error', async () => {
    const { sql } = database
    const change = () => sql.begin(async (tx) => (await tx`update thing set size = 7 where id = 1 returning *`)[0]!)
    await change()
    await sql.script("alter table thing add column even_more text not null default 'even more'")
    await assert.rejects(change(), (error) => isTransient(error) && toProblem(error).status === 503)
    assert.equal((await change())['even_more'], 'even more')
  })

  it('a statement that times out fails, and the next one runs on a new connection', async () => {
    const late = openDatabase({
      connection: test.connection,
      connectionsMax: 1,
      statement_ms: 10_000,
      timeoutMultiplier: 0.02,
    })
    try {
      const begin = performance.now()
      await assert.rejects(
        late.sql`select pg_sleep(5)`,
        (error: Error) => error.message === 'Query read timeout' && isTransient(error),
      )
      assert.ok(performance.now() - begin < 3000)
      assert.deepEqual(await late.sql`select 1 as one`, [{ one: 1 }])
    } finally {
      await late.close()
    }
  })
})
