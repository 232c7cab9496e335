import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { CronError, DueTimes } from './cron.ts'
import { decide, firstDue, type Situation, type Timing } from './due.ts'

const next = (cron: string, time_zone: string, from: string, count = 3): string[] => {
  const times = new DueTimes(cron, time_zone)
  const found: string[] = []
  for (let at = times.after(new Date(from)); at && found.length < count; at = times.after(at)) {
    found.push(at.toISOString())
  }
  return found
}
const minutes = (...times: string[]) => times.map((time) => `${time}:00.000Z`)

describe('due times', () => {
  it('a time that is skipped in spring is due once, right after the gap', () => {
    assert.deepEqual(
      next('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z'),
      minutes('2026-03-29T01:00', '2026-03-30T00:30', '2026-03-31T00:30'),
    )
    assert.deepEqual(
      next('30 2,14 * * *', 'Europe/Berlin', '2026-03-28T14:00:00Z', 2),
      minutes('2026-03-29T01:00', '2026-03-29T12:30'),
    )
  })

  it('a time that comes twice in autumn is due once, at the first of the two', () => {
    const expected = minutes('2026-10-25T00:30', '2026-10-26T01:30', '2026-10-27T01:30')
    assert.deepEqual(next('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z'), expected)
    assert.deepEqual(
      next('30 2 * * *', 'Europe/Berlin', '2026-10-25T00:30:00Z'),
      expected.slice(1).concat(minutes('2026-10-28T01:30')),
    )
  })

  it('a schedule of every half hour is due every 30 minutes, also across clock changes', () => {
    for (const from of ['2026-03-29T00:00:00Z', '2026-10-24T23:30:00Z']) {
      const found = [from, ...next('*/30 * * * *', 'Europe/Berlin', from, 8)].map((at) => Date.parse(at))
      for (let i = 1; i < found.length; i++) assert.equal(found[i]! - found[i - 1]!, 30 * 60_000)
    }
  })

  it('the 29th of February is due only in leap years', () => {
    assert.deepEqual(
      next('0 0 29 2 *', 'UTC', '2026-11-20T00:00:00Z'),
      minutes('2028-02-29T00:00', '2032-02-29T00:00', '2036-02-29T00:00'),
    )
    assert.deepEqual(next('0 0 29 2 *', 'UTC', '2096-03-01T00:00:00Z', 1), minutes('2104-02-29T00:00'))
  })

  it('a day that no month has is never due', () => {
    for (const cron of ['0 0 30 2 *', '0 0 31 4,6,9,11 *', '0 0 31 feb *'])
      assert.equal(firstDue({ cron, time_zone: 'Europe/Berlin' }, new Date('2026-11-20T00:00:00Z')), null, cron)
  })

  it('cron nicknames, names, ranges, last days and the second Friday are supported', () => {
    const from = '2026-03-01T00:00:00Z'
    for (const [cron, first] of [
      ['@hourly', '2026-03-01T01:00'],
      ['@daily', '2026-03-02T00:00'],
      ['@midnight', '2026-03-02T00:00'],
      ['@weekly', '2026-03-08T00:00'],
      ['@monthly', '2026-04-01T00:00'],
      ['@yearly', '2027-01-01T00:00'],
      ['0 0 * * mon-fri', '2026-03-02T00:00'],
      ['0 0 L * *', '2026-03-31T00:00'],
      ['0 0 * * FRI#2', '2026-03-13T00:00'],
      ['0 0 * * 7', '2026-03-08T00:00'],
      ['0 0 1 jan *', '2027-01-01T00:00'],
    ] as const)
      assert.deepEqual(next(cron, 'UTC', from, 1), minutes(first), cron)
  })

  it('a text that is not a cron pattern is refused with its field', () => {
    const wrong = [
      '',
      '* * * *',
      '* * * * * *',
      '60 * * * *',
      '* 24 * * *',
      '0 0 0 * *',
      '0 0 * 13 *',
      '0 0 * * 8',
      '5/5 * * * *',
    ]
    for (const cron of [
      ...wrong,
      '? * * * *',
      '@reboot',
      '@Never',
      '* * * * * 2030',
      'a b c d e',
      '5-1 * * * *',
      '*/0 * * * *',
    ])
      assert.throws(
        () => new DueTimes(cron, 'UTC'),
        (error) => error instanceof CronError && error.field === 'cron',
        cron,
      )
    for (const zone of ['Nowhere/Town', '+02:00', '', 'UTC+1', 'Europe/Berlin '])
      assert.throws(
        () => new DueTimes('@daily', zone),
        (error) => error instanceof CronError && error.field === 'time_zone',
        zone,
      )
  })

  const field = (max: number, min = 0) =>
    fc.oneof(
      fc.constant('*'),
      fc.integer({ min, max }).map(String),
      fc.integer({ min: 1, max: 30 }).map((step) => `*/${Math.min(step, max)}`),
      fc
        .tuple(fc.integer({ min, max }), fc.integer({ min, max }))
        .map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
    )
  const patterns = fc
    .tuple(
      field(59),
      field(23),
      field(28, 1),
      fc.oneof(fc.constant('*'), field(12, 1)),
      fc.oneof(fc.constant('*'), field(6)),
    )
    .map((fields) => fields.join(' '))
  const zones = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu')
  const moments = fc.integer({ min: 1_760_000_000, max: 1_860_000_000 }).map((seconds) => new Date(seconds * 1000))

  it('no due time lies between the last due time before a moment and that moment', () => {
    fc.assert(
      fc.property(patterns, zones, moments, (cron, zone, timestamp) => {
        const times = new DueTimes(cron, zone)
        const last = times.until(timestamp)
        if (!last) return
        assert.ok(last <= timestamp)
        const following = times.after(last)
        assert.ok(
          following === null || following > timestamp,
          `${cron} ${zone}: ${last.toISOString()} ${following?.toISOString()}`,
        )
        assert.deepEqual(times.until(last), last)
      }),
      { numRuns: 300 },
    )
  })
})

const fine: Situation = {
  agent_status: 'running',
  agent_accepts_tasks: true,
  has_open_task: false,
  queue_is_full: false,
}
const timing = (more: Partial<Timing> = {}): Timing => ({
  cron: '*/10 * * * *',
  time_zone: 'UTC',
  overlap: 'skip',
  catch_up: 'once',
  next_run_at: '2026-11-20T10:00:00.000Z',
  ...more,
})
const at = (time: string) => new Date(`2026-11-20T${time}Z`)

describe('a decision', () => {
  it('a schedule creates no task before its due time or while paused', () => {
    assert.equal(decide(timing(), fine, at('09:59:59.999')), undefined)
    assert.equal(decide(timing({ next_run_at: null }), fine, at('10:00:00')), undefined)
  })

  it('a schedule creates the task from the due time on, and moves to the next one', () => {
    for (const now of ['10:00:00', '10:00:01', '10:00:59'])
      for (const catch_up of ['once', 'none'] as const)
        assert.deepEqual(decide(timing({ catch_up }), fine, at(now)), {
          due: '2026-11-20T10:00:00.000Z',
          next: '2026-11-20T10:10:00.000Z',
          fault: null,
        })
  })

  it('a schedule creates one task for all missed due times, with the last of them', () => {
    assert.deepEqual(decide(timing(), fine, at('12:35:00')), {
      due: '2026-11-20T12:30:00.000Z',
      next: '2026-11-20T12:40:00.000Z',
      fault: null,
    })
  })

  it('a schedule creates no task for missed due times if it is set to skip them', () => {
    const decision = decide(timing({ catch_up: 'none' }), fine, at('12:35:00'))
    assert.deepEqual([decision?.fault?.code, decision?.next], ['missed', '2026-11-20T12:40:00.000Z'])
    // The last one is only just over: it was not missed, whatever became of those before it.
    assert.equal(decide(timing({ catch_up: 'none' }), fine, at('12:30:30'))?.fault, null)
  })

  it('a schedule skips a due time while an earlier task is open, or queues the task behind it', () => {
    const open = { ...fine, has_open_task: true }
    assert.equal(decide(timing(), open, at('10:00:00'))?.fault?.code, 'task_open')
    assert.equal(decide(timing({ overlap: 'queue' }), open, at('10:00:00'))?.fault, null)
  })

  it('a schedule records why it created no task', () => {
    const stopped = { ...fine, agent_status: 'stopped', agent_accepts_tasks: false }
    assert.deepEqual(decide(timing(), stopped, at('10:00:00'))?.fault, {
      code: 'agent_not_running',
      message: 'The agent is stopped and accepts no tasks.',
    })
    assert.equal(decide(timing(), { ...fine, queue_is_full: true }, at('10:00:00'))?.fault?.code, 'queue_full')
  })

  it('a schedule acts once for every due time, whenever it is checked', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 3_000_000 }), { maxLength: 60 }), (steps_ms) => {
        let now = Date.parse('2026-11-20T09:55:00Z')
        const row = timing()
        const acted: string[] = []
        for (const step of steps_ms) {
          now += step
          const decision = decide(row, fine, new Date(now))
          if (!decision) continue
          assert.ok(Date.parse(decision.due) <= now && Date.parse(decision.next!) > now)
          acted.push(decision.due)
          row.next_run_at = decision.next
        }
        assert.deepEqual(acted, [...new Set(acted)].sort())
      }),
      { numRuns: 200 },
    )
  })
})
