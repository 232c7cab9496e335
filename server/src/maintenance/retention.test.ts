import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { insertTestAgent } from '../../test/fixtures.ts'
import { makeTestDatabase } from '../../test/harness.ts'
import { useOf } from '../backup/table-uses.ts'
import type { NewTask } from '../engine/commands/new-task.ts'
import { openDatabase, type Database, type Sql } from '../platform/postgres/database.ts'
import { dropPartition, listPartitions } from '../platform/postgres/partitions.ts'
import { sweepConversations } from '../protocols/conversations.queries.ts'
import { dropOldMonths, sweepRecords } from './retention.ts'

const month = '202301'

describe('retention', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let sql: Sql
  let agent: NewTask['agent']

  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    sql = database.sql
    agent = await insertTestAgent(sql)
  })
  after(async () => {
    await database.close()
    await test.drop()
  })

  /** Makes the partitions of a past month. */
  const makeMonth = async (): Promise<void> => {
    for (const [table, prefix] of [
      ['task_step', 'task'],
      ['task_event', 'task'],
      ['event', 'evt'],
      ['delivery', 'dlv'],
      ['delivery_attempt', 'dlv'],
    ]) {
      const [row] = await sql<{ from: string; to: string }>`
        select id_floor(${prefix}, to_timestamp(${month}, 'YYYYMM')) as from,
          id_floor(${prefix}, to_timestamp(${month}, 'YYYYMM') + interval '1 month') as to`
      await sql.script(
        `create table ${table}_${month} partition of ${table} for values from ('${row!.from}') to ('${row!.to}')`,
      )
    }
  }
  const insertOldTask = async (): Promise<string> => {
    const [row] = await sql<{ id: string }>`
      insert into task (id, project_id, agent_id, agent_version, status, input, priority, max_attempts, budget, usage, created_by)
      select id_floor('task', to_timestamp(${month}, 'YYYYMM') + interval '3 days'), ${agent.project_id}, ${agent.id}, 0, 'queued', '"x"', 5,
        5, '{}', '{}', 'user_x' returning id`
    return row!.id
  }
  const months = async (): Promise<string[]> =>
    (
      await Promise.all(
        ['task_step', 'task_event', 'event', 'delivery', 'delivery_attempt'].map((table) => listPartitions(sql, table)),
      )
    )
      .flat()
      .filter((name) => name.endsWith(month))

  it('a month of tasks is dropped once none of its tasks is left, also one without steps; events are dropped by age', async () => {
    await makeMonth()
    const id = await insertOldTask()
    const before = (await listPartitions(sql, 'task_event')).length
    await dropOldMonths(sql)
    assert.deepEqual(await months(), [`task_step_${month}`, `task_event_${month}`])
    await sql`delete from task where id = ${id}`
    await dropOldMonths(sql)
    assert.deepEqual(await months(), [])
    // Partitions of this month and the next ones are empty and stay.
    assert.equal((await listPartitions(sql, 'task_event')).length, before - 1)
  })

  it('a month of deliveries and its events are dropped after 30 days, but not while one of them is pending', async () => {
    await makeMonth()
    const at = sql.fragment`to_timestamp(${month}, 'YYYYMM') + interval '3 days'`
    await sql.script(`
      insert into organization (id, name) values ('org_x', 'x') on conflict do nothing;
      insert into webhook (id, org_id, url, events, secret, created_by) values ('wh_x', 'org_x', 'x', '{}', '', 'user_x')`)
    await sql.run(sql.fragment`
      insert into event (id, org_id, type, data, matched_at) select id_floor('evt', ${at}), 'org_x', 'x', '{}', now()`)
    await sql.run(sql.fragment`
      insert into delivery (id, webhook_id, org_id, event_id, event, next_attempt_at)
      select id_floor('dlv', ${at}), 'wh_x', 'org_x', id_floor('evt', ${at}), 'x', now()`)
    const kept = [`event_${month}`, `delivery_${month}`, `delivery_attempt_${month}`]
    await dropOldMonths(sql)
    assert.deepEqual(await months(), kept)
    await sql`update delivery set status = 'delivered', next_attempt_at = null`
    await sql`update event set matched_at = null`
    await dropOldMonths(sql)
    assert.deepEqual(await months(), [`event_${month}`])
    await sql`update event set matched_at = now()`
    await dropOldMonths(sql)
    assert.deepEqual(await months(), [])
  })

  it('pending deliveries of a deleted webhook do not keep their month', async () => {
    await makeMonth()
    await sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, next_attempt_at)
      select id_floor('dlv', to_timestamp(${month}, 'YYYYMM')), 'wh_gone', 'org_x', 'evt_gone', 'x', now()`
    await dropOldMonths(sql)
    assert.deepEqual(await months(), [])
    const [row] = await sql<{ from: string; to: string }>`
      select to_char(now() - interval '29 days', 'YYYYMM') as from, to_char(now(), 'YYYYMM') as to`
    const kept = (await listPartitions(sql, 'delivery')).map((name) => name.slice(-6))
    assert.ok(kept.includes(row!.to) && kept.every((name) => name >= row!.from), kept.join())
  })

  it('dropping a partition gives way to users of the table, and delays writers only briefly', async () => {
    await makeMonth()
    const partition = { table: 'task_event', name: `task_event_${month}` }
    const reading = Promise.withResolvers<void>()
    const read = Promise.withResolvers<void>()
    const reader = sql.begin(async (tx) => {
      await tx`select 1 from task_event limit 1`
      reading.resolve()
      await read.promise
    })
    await reading.promise
    const dropping = dropPartition(sql, partition)
    const start_ms = performance.now()
    await sql`insert into task_event (task_id, sequence, type, data) values (id_floor('task', now()), 1, 'x', '{}')`
    const waited_ms = performance.now() - start_ms
    assert.equal(await dropping, false)
    assert.ok(waited_ms < 1500, `a writer waited ${waited_ms} ms`)
    read.resolve()
    await reader
    assert.ok((await months()).includes(partition.name))
    assert.deepEqual(await Promise.all([dropPartition(sql, partition), dropPartition(sql, partition)]).then(count), 1)
    assert.ok(!(await months()).includes(partition.name))
  })

  it('hours of usage and entries of the audit log are deleted after 400 days', async () => {
    await sql`
      insert into usage_hour (org_id, project_id, agent_id, credential_id, model, tool, hour)
      select 'org_x', 1, 'agent_x', '', 'm', '', now() - make_interval(days => d) from unnest(array[399, 401]) d`
    await sql`
      insert into audit (id, action) select id_floor('aud', now() - make_interval(days => d)), d::text from unnest(array[399, 401]) d`
    await sweepRecords(sql)
    const [row] = await sql<{ hours: number; entries: string[] }>`
      select (select count(*) from usage_hour) as hours, array(select action from audit where org_id is null) as entries`
    assert.deepEqual(row, { hours: 1, entries: ['399'] })
  })

  it('a conversation is deleted with its thread; without one, after the retention of tasks', async () => {
    await sql`
      insert into thread (id, project_id, agent_id, created_by) select 'thread_kept', ${agent.project_id}, ${agent.id}, 'user_x'`
    await sql`
      insert into door_conversation (id, org_id, thread_id, created_by)
      select id_floor('conv', now() - make_interval(days => c.days)), p.org_id, c.thread_id, 'user_x'
      from (values (100, 'thread_kept'), (99, null), (9, null)) c(days, thread_id), project p where p.id = ${agent.project_id}`
    assert.equal(await sweepConversations(sql, 0), 0)
    assert.equal(await sweepConversations(sql, 30), 1)
    await sql`delete from thread where id = 'thread_kept'`
    assert.equal(await sweepConversations(sql, 30), 1)
    const rows = await sql<{ id: string }>`select id from door_conversation`
    assert.equal(rows.length, 1)
  })

  it('the guide to running in production documents the retention of every table whose rows expire', async () => {
    const guide = await readFile(new URL('../../../docs/guides/running-in-production.md', import.meta.url), 'utf8')
    const tables = await sql<{ name: string }>`
      select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
        and relname <> 'schema_migration'`
    assert.ok(tables.length > 30)
    const isStoredUntilDeleted = (name: string): boolean => {
      const use = useOf(name)
      return 'retention' in use && use.retention === 'until it is deleted'
    }
    assert.deepEqual(
      tables.filter(({ name }) => !isStoredUntilDeleted(name) && !guide.includes(`\`${name}\``)),
      [],
    )
  })
})

function count(dropped: readonly boolean[]): number {
  return dropped.filter(Boolean).length
}
