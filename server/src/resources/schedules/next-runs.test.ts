import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

describe('due times in advance', () => {
  let test: TestService
  let base: string
  let agent_id: string
  before(async () => {
    test = await shareTestService()
    const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'runs' } })
    base = `/api/v1/projects/proj_${body.id}`
    agent_id = (await test.send('POST', `${base}/agents`, { body: { name: 'a', config: { model: 'builtin/echo' } } }))
      .body.id
  })
  after(() => test.stop())

  it('a schedule is returned with its next five due times, earliest first, and none while paused', async () => {
    const { body } = await test.send('POST', `${base}/schedules`, {
      body: { agent_id, name: 'hourly', cron: '0 * * * *', input: 'x' },
    })
    assert.equal(body.next_runs.length, 5)
    assert.equal(body.next_runs[0], body.next_run_at)
    const hours = body.next_runs.map((at: string) => Date.parse(at) / 3_600_000)
    assert.deepEqual(
      hours.map((hour: number) => hour - hours[0]),
      [0, 1, 2, 3, 4],
    )
    await test.send('POST', `${base}/schedules/${body.id}/pause`)
    assert.deepEqual((await test.send('GET', `${base}/schedules/${body.id}`)).body.next_runs, [])
  })

  it('a schedule with a pattern that this version cannot read still shows when it is due', async () => {
    const { body } = await test.send('POST', `${base}/schedules`, {
      body: { agent_id, name: 'odd', cron: '0 0 1 1 *', input: 'x' },
    })
    await test.sql`update schedule set cron = 'not a pattern' where id = ${body.id}`
    const { status, body: read } = await test.send('GET', `${base}/schedules/${body.id}`)
    assert.deepEqual([status, read.next_runs], [200, [body.next_run_at]])
    await test.sql`delete from schedule where id = ${body.id}`
  })

  it('a pattern is previewed in its time zone, and an invalid one is refused with its field', async () => {
    const preview = (query: Record<string, string>) =>
      test.send('GET', `${base}/schedules/preview?${new URLSearchParams(query)}`)
    const { status, body } = await preview({ cron: '30  7 * * mon', time_zone: 'Europe/Berlin' })
    assert.deepEqual(
      [status, body.cron, body.time_zone, body.next_runs.length],
      [200, '30 7 * * mon', 'Europe/Berlin', 5],
    )
    const local = new Intl.DateTimeFormat('en-GB', {
      timeZone: 'Europe/Berlin',
      weekday: 'short',
      timeStyle: undefined,
      hour: '2-digit',
      minute: '2-digit',
    })
    assert.match(local.format(new Date(body.next_runs[0])), /Mon.*07:30/)
    for (const [query, field] of [
      [{ cron: 'x y z a b' }, 'cron'],
      [{ cron: '* * * * *', time_zone: 'Mars/Base' }, 'time_zone'],
    ] as const) {
      const refused = await preview(query)
      assert.deepEqual(
        [refused.status, refused.body.error.details[0].field],
        [400, field],
        JSON.stringify(refused.body),
      )
    }
    assert.deepEqual((await preview({ cron: '0 0 31 2 *' })).body.next_runs, [])
  })

  it('the tasks of a schedule are listed', async () => {
    const { body } = await test.send('POST', `${base}/schedules`, {
      body: { agent_id, name: 'history', cron: '0 0 1 1 *', input: 'x' },
    })
    const { body: task } = await test.send('POST', `${base}/schedules/${body.id}/trigger`)
    const { body: list } = await test.send('GET', `${base}/tasks?schedule_id=${body.id}`)
    assert.deepEqual([list.tasks.map(({ id }: { id: string }) => id), list.pagination.total], [[task.id], 1])
  })
})
