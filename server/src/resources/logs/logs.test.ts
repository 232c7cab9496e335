import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { LogEntry } from '#contract/resources/logs.ts'
import { eventually, type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { writeAgentLog } from '../../events/agent-log.ts'
import { check } from '../../http/validation.ts'
import { createProject } from '../../../test/fixtures.ts'

describe("an agent's log", () => {
  let service: TestService
  let path: string
  let agent_id: string
  let first_at: number
  before(async () => {
    service = await shareTestService()
    const project = await createProject(service.send, 'logs')
    const { body: agent } = await service.send('POST', `${project.path}/agents`, { body: { name: 'a' } })
    agent_id = agent.id
    path = `${project.path}/agents/${agent_id}/logs`
    // Entries of the agent's own life would be in the way.
    await eventually(
      async () => (await service.sql`select 1 from agent where id = ${agent_id} and status = 'running'`).length === 1,
    )
    await service.sql`delete from agent_log where agent_id = ${agent_id}`
    // Entries of the last minute are in no sums yet; the shared service may have made those of any earlier time.
    first_at = Date.now() - 10_000
    for (const [level, nth] of [
      ['info', 1],
      ['warn', 2],
      ['info', 3],
      ['error', 4],
      ['debug', 5],
    ] as const) {
      await service.sql`
        insert into agent_log (id, agent_id, timestamp, level, message, context)
        values (${`log_${nth}`}, ${agent_id}, ${at(nth)}, ${level}, ${`entry ${nth}`}, '{"n": 1}')`
    }
  })
  after(() => service.stop())

  const get = (query = ''): Promise<Reply> => service.send('GET', `${path}${query}`)
  const messages = async (query: string): Promise<string[]> =>
    (await get(query)).body.logs.map(({ message }: any) => message)
  const at = (nth: number): string => new Date(first_at + nth * 1000).toISOString()

  it("an agent's log is listed newest first, in pages", async () => {
    const { status, body } = await get('?limit=2&offset=1')
    assert.equal(status, 200)
    assert.deepEqual(
      body.logs.map(({ message }: any) => message),
      ['entry 4', 'entry 3'],
    )
    const { next_cursor, ...pagination } = body.pagination
    assert.deepEqual(pagination, { total: 5, limit: 2, offset: 1, has_more: true })
    assert.equal(typeof next_cursor, 'string')
    assert.deepEqual(body.logs[0], { timestamp: at(4), level: 'error', message: 'entry 4', context: { n: 1 } })
    for (const entry of body.logs) assert.deepEqual(check(LogEntry, entry), [])
    assert.equal((await get()).body.pagination.limit, 100)
  })

  it("an agent's log is filtered by one level, from a start time up to before an end time", async () => {
    assert.deepEqual(await messages('?level=info'), ['entry 3', 'entry 1'])
    assert.deepEqual(await messages(`?start_time=${at(2)}&end_time=${at(4)}`), ['entry 3', 'entry 2'])
    assert.deepEqual(await messages(`?start_time=${at(2)}&level=warn`), ['entry 2'])
    assert.equal((await get(`?end_time=${at(1)}`)).body.pagination.total, 0)
  })

  it("an agent's log is filtered by a literal part of the message, ignoring case, and by task", async () => {
    assert.deepEqual(await messages('?search=ENTRY%202'), ['entry 2'])
    assert.deepEqual(await messages('?search=entry&level=info'), ['entry 3', 'entry 1'])
    assert.deepEqual(await messages('?search=e%25y'), [])
    await service.sql`update agent_log set task_id = 'task_1' where id in ('log_2', 'log_4')`
    assert.deepEqual(await messages('?task_id=task_1'), ['entry 4', 'entry 2'])
    assert.deepEqual(await messages('?task_id=task_1&search=4'), ['entry 4'])
    assert.deepEqual(await messages('?task_id=task_2'), [])
  })

  it("an agent's log refuses invalid filters, each by its field", async () => {
    const faults = async (query: string) =>
      (await get(query)).body.error.details.map(({ field, code }: any) => [field, code])
    assert.deepEqual(await faults('?level=fatal'), [['level', 'invalid_choice']])
    assert.deepEqual(await faults('?limit=1001'), [['limit', 'out_of_range']])
    assert.deepEqual(await faults(`?start_time=${at(2)}&end_time=${at(2)}`), [['end_time', 'out_of_range']])
    assert.deepEqual(await faults('?start_time=yesterday'), [['start_time', 'invalid_format']])
  })

  it("an agent's log never shows a secret, and is cut to its bounds", async () => {
    const context = {
      header: 'Bearer abc.def',
      nested: ['the value-of-env', { key: `cadre_${'0'.repeat(32)}` }],
      after: 'kept',
    }
    await writeAgentLog(
      service.sql,
      [{ agent_id, level: 'info', message: 'with value-of-env', context }],
      ['value-of-env'],
    )
    const [entry] = (await get('?limit=1')).body.logs
    assert.equal(entry.message, 'with [redacted]')
    assert.deepEqual(entry.context, {
      header: '[redacted]',
      nested: ['the [redacted]', { key: '[redacted]' }],
      after: 'kept',
    })
    await writeAgentLog(service.sql, [
      { agent_id, level: 'info', message: 'ä'.repeat(8000), context: { long: 'x'.repeat(20_000) } },
    ])
    const [long] = (await get('?limit=1')).body.logs
    assert.ok(Buffer.byteLength(long.message) <= 8192)
    assert.ok(Buffer.byteLength(JSON.stringify(long.context)) <= 16_384)
  })
})
