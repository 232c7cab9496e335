import assert from 'node:assert/strict'
import { request, type IncomingMessage } from 'node:http'
import { after, before, it, mock } from 'node:test'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { makeKey, makePerson, type Person } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { sizeOf } from '../../../test/long-run.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { exportLines } from './audit-export.ts'

const path = '/api/v1/auth/audit/export'
/** More than the sockets between the two ends take. */
const many = sizeOf({ short: 10_000, long: 100_000 })

let test: TestService
/** Of an organization with `many` entries. */
let large: Person & { key: string }
before(async () => {
  test = await startTestService()
  large = await newOwner()
  // Of today: older ones are beyond what is kept, and may be removed meanwhile.
  const today = newId('aud').slice(0, 'aud_'.length + 10)
  for (let from = 0; from < many; from += 5000) {
    await test.sql`
      insert into audit (id, org_id, actor, action, target, detail)
      select ${today} || lpad(i::text, 16, '0'), ${large.org_id}, ${large.user_id}, 'agent.updated', 'agent_' || i,
        jsonb_build_object('filler', repeat('x', 300))
      from generate_series(${from}::int, ${from + 4999}::int) i`
  }
})
after(() => test.stop())

async function newOwner(): Promise<Person & { key: string }> {
  const person = await makePerson(test)
  return { ...person, key: (await makeKey(test, person, ['admin'])).key }
}

const parse = (text: string): any[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

it('an export of the audit log has the entries of the list as lines, oldest first, with the same filters', async () => {
  const { key } = await newOwner()
  for (const name of ['one', 'two', 'three'])
    await test.send('POST', '/api/v1/projects', { key, body: { name: `export-${name}` } })
  const { entries } = (await test.send('GET', '/api/v1/auth/audit', { key })).body
  const { status, headers, body } = await test.send('GET', path, { key })
  assert.equal(status, 200)
  assert.match(headers.get('content-type')!, /^application\/x-ndjson/)
  assert.equal(headers.get('content-disposition'), 'attachment; filename="audit.ndjson"')
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.ok(body.endsWith('\n'))
  assert.deepEqual(parse(body), entries.toReversed())
  const [, second] = entries
  assert.deepEqual(parse((await test.send('GET', `${path}?target=${second.target}`, { key })).body), [second])
  assert.equal((await test.send('GET', `${path}?action=agent.`, { key })).body, '')
})

it(`the export of ${many} entries has each once and in order`, async () => {
  const response = await fetch(new URL(path, test.url), { headers: { 'x-api-key': large.key } })
  assert.equal(response.status, 200)
  let count = 0
  for await (const line of createInterface({ input: Readable.fromWeb(response.body! as never) }))
    assert.equal(JSON.parse(line).target, `agent_${count++}`)
  assert.equal(count, many)
})

/** The same connection, counting what it is asked. */
function counting(sql: Sql): { sql: Sql; count: () => number } {
  let count = 0
  const run: Sql['run'] = (statement) => {
    count += 1
    return sql.run(statement)
  }
  return { sql: Object.assign(((...all: Parameters<Sql>) => sql(...all)) as Sql, sql, { run }), count: () => count }
}

it('an export of the audit log reads no faster than its client, and holds no transaction in between', async () => {
  const counted = counting(test.sql)
  const lines = Readable.from(exportLines(counted.sql, large, { last: newId('aud'), onStall: assert.fail }), {
    objectMode: false,
  })
  const reading = lines[Symbol.asyncIterator]()
  await reading.next()
  const [{ open } = { open: -1 }] = await test.sql<{ open: number }>`
    select count(*) as open from pg_stat_activity a
    where a.datname = current_database() and a.state like 'idle in transaction%'
      and exists (select from pg_locks l where l.pid = a.pid and l.relation = 'audit'::regclass)`
  assert.equal(open, 0, 'a transaction that has read the table is open')
  assert.ok(counted.count() <= 3, `${counted.count()} batches were read ahead`)
  await reading.return!()
})

it('an export of the audit log leaves out what is written while it runs', async () => {
  const person = await newOwner()
  const insert = (id: string) =>
    test.sql`insert into audit (id, org_id, action) values (${id}, ${person.org_id}, 'agent.created')`
  const [first, last, later] = [newId('aud'), newId('aud'), newId('aud')]
  await insert(first)
  await insert(later)
  const lines = await Array.fromAsync(exportLines(test.sql, person, { last, onStall: assert.fail }))
  assert.deepEqual(
    parse(lines.join('')).map(({ id }) => id),
    [first],
  )
})

it('an export of the audit log aborts if the client does not read for half a minute', async () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    let stalls = 0
    const lines = exportLines(test.sql, large, { last: newId('aud'), onStall: () => (stalls += 1) })
    await lines.next()
    mock.timers.tick(29_000)
    await lines.next()
    mock.timers.tick(29_999)
    assert.equal(stalls, 0)
    mock.timers.tick(1)
    assert.equal(stalls, 1)
    await lines.return(undefined)
  } finally {
    mock.timers.reset()
  }
})

it('an export of the audit log that cannot continue closes the connection, so that a part does not look complete', async () => {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(new URL(path, test.url), { headers: { 'x-api-key': large.key } }, resolve)
      .on('error', reject)
      .end()
  })
  // Nothing is read yet: what the sockets in between take is a part of the whole.
  await test.sql`alter table audit rename to audit_elsewhere`
  try {
    await assert.rejects(async () => {
      for await (const _ of response);
    }, /aborted|ECONNRESET/)
  } finally {
    await test.sql`alter table audit_elsewhere rename to audit`
  }
})
