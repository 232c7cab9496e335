import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { makeTestDatabase } from '../../test/harness.ts'
import { openDatabase, type Database } from '../platform/postgres/database.ts'
import { inOrder } from './snapshot.ts'
import { columnsLeftOut, tableUses, useOf } from './table-uses.ts'

let made: Awaited<ReturnType<typeof makeTestDatabase>>
let database: Database
before(async () => {
  made = await makeTestDatabase()
  database = openDatabase({ connection: made.connection, connectionsMax: 2 })
})
after(async () => {
  await database.close()
  await made.drop()
})

describe('tables in a backup', () => {
  it('tableUses has every table, and no other', async () => {
    const tables = await database.sql<{ name: string }>`
      select relname as name from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`
    assert.deepEqual(
      Object.keys(tableUses).toSorted(),
      tables.map(({ name }) => name).toSorted(),
      'a new table must be added to tableUses: kept, or left out for a reason',
    )
  })

  it('a backup has every table that survives a crash of PostgreSQL, except those of processes, migrations and sums', async () => {
    const unlogged = await database.sql<{ name: string }>`
      select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' and relpersistence = 'u'`
    const leftOut = Object.keys(tableUses).filter((name) => useOf(name).is === 'left out')
    const sums = ['agent_count', 'project_count', 'task_total', 'task_total_state']
    assert.deepEqual(
      leftOut.toSorted(),
      [...unlogged.map(({ name }) => name), ...sums, 'index_to_build', 'schema_migration', 'worker'].toSorted(),
    )
  })

  it('a restore can fill every column that a backup omits', async () => {
    const optional = await database.sql<{ name: string }>`
      select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and (is_nullable = 'YES' or column_default is not null)`
    const names = new Set(optional.map(({ name }) => name))
    for (const table of Object.keys(tableUses))
      for (const column of columnsLeftOut(table)) assert.ok(names.has(`${table}.${column}`), `${table}.${column}`)
  })

  it('the guide to backups lists exactly the tables that a backup omits', async () => {
    const guide = await readFile(new URL('../../../docs/guides/backup.md', import.meta.url), 'utf8')
    const section = guide.split('## What is not in it')[1]?.split('\n## ')[0] ?? ''
    for (const name of Object.keys(tableUses)) {
      const isWhole = useOf(name).is === 'kept' && columnsLeftOut(name).length === 0
      assert.equal(section.includes(`\`${name}\``), !isWhole, name)
    }
  })

  it('tables are restored in an order in which referenced rows come first', () => {
    const references = [
      { from: 'a', to: 'b' },
      { from: 'b', to: 'c' },
      { from: 'a', to: 'd' },
      { from: 'c', to: 'left out' },
    ]
    assert.deepEqual(inOrder(['a', 'b', 'c', 'd', 'e'], references), ['c', 'd', 'e', 'b', 'a'])
    assert.throws(() => inOrder(['a', 'b'], [...references, { from: 'b', to: 'a' }]), /in a circle: a, b/)
  })
})
