import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, it } from 'node:test'
import { coverage } from './coverage.ts'
import { checkSpan, promises, runFault, type Fault } from './fault.ts'
import { faults } from './faults.ts'
import { watchStandstill } from './checker/standstill.ts'
import { makeRng } from '../../server/test/rng.ts'
import { promisesTable } from './table.ts'
import { checkWindowCounts, minuteAfter } from './checker/windows.ts'

const still = (ms: number) => ({ between: () => ms, stop: async () => {} })
const check = (took_ms: number, still_ms: number) =>
  checkSpan(still(still_ms), 'R12', 'an answer', 1000, { from: 0, to: took_ms })

describe('a bound of time', () => {
  it('a promise holds, breaks, or is not judged if the machine stood still at the missed time', () => {
    assert.equal(check(1000, 0).verdict, 'held')
    assert.equal(check(1001, 0).verdict, 'broken')
    assert.equal(check(3000, 1999).verdict, 'broken')
    const unjudged = check(3000, 2000)
    assert.deepEqual(
      [unjudged.verdict, unjudged.why],
      ['not judged', 'the machine was busy with others, or stood still, for 2000 ms of it'],
    )
    assert.equal(checkSpan(still(9999), 'R12', 'an answer', 1000, undefined).verdict, 'broken')
  })
})

describe('the standstill', () => {
  it('the standstill is no longer than the time in which it was', async () => {
    const standstill = await watchStandstill()
    const from = performance.now()
    await new Promise((done) => setTimeout(done, 500))
    const to = performance.now()
    await new Promise((done) => setTimeout(done, 100))
    const still_ms = standstill.between(from, to)
    assert.equal(standstill.between(0, from - 10_000), 0)
    await standstill.stop()
    assert.ok(still_ms >= 0 && still_ms <= to - from + 1, `${still_ms} of ${to - from}`)
  })
})

describe('windows of limits', () => {
  const window = (ends: number, admitted: number, refused: number) => {
    const of = (outcome: 'admitted' | 'refused') => ({ window: String(ends), outcome })
    return {
      ends,
      requests: [
        ...Array.from({ length: admitted }, () => of('admitted')),
        ...Array.from({ length: refused }, () => of('refused')),
      ],
    }
  }

  it('windows of limits are judged one by one, but for those that are excused', () => {
    const windows = [window(60, 100, 5), window(120, 101, 5), window(180, 50, 1), window(240, 50, 0)]
    const { judged, admitted, refused, wrong } = checkWindowCounts(windows, 100, () => false)
    assert.deepEqual([judged, admitted, refused], [4, [100, 101, 50, 50], 11])
    assert.deepEqual(wrong, ['120 admitted 101 of 100', '180 refused although it had admitted 50 of 100'])
    assert.deepEqual(checkWindowCounts(windows, 100, (ends) => ends === 120 || ends === 180).wrong, [])
    assert.deepEqual([minuteAfter(59_999), minuteAfter(60_000)], [60, 120])
  })
})

describe('a run', () => {
  const fault = (run: Fault['run']): Fault => ({ id: 'FX', title: 'none', hypothesis: 'none', run })
  const options = { rng: makeRng(1), short: true, say: () => {}, standstill: still(0) }

  it('a run ends what it began in the opposite order, also where it fails, and says what broke', async () => {
    const ended: number[] = []
    const failing = fault(async ({ atEnd }) => {
      for (const number of [1, 2]) atEnd(async () => void ended.push(number))
      throw new Error('it failed')
    })
    await assert.rejects(runFault(failing, options), /it failed/)
    assert.deepEqual(ended, [2, 1])
    const findings = await runFault(
      fault(async ({ holds }) => holds('R1', 'writes', ['one is lost'])),
      options,
    )
    const table = promisesTable(findings.map((finding) => ({ ...finding, fault: 'FX' })))
    assert.match(table, /^R1 +BROKEN .*\n +FX +broken +writes: 1: one is lost$/m)
    assert.match(table, /^R2 +not touched/m)
  })
})

describe('the table', () => {
  const held = (promise: 'R1' | 'R5') => ({ promise, what: 'some', verdict: 'held', fault: 'FX' }) as const

  it('the table says where each promise that this run does not cover is measured', () => {
    const nothing = promisesTable([])
    for (const id of Object.keys(promises))
      assert.match(nothing, new RegExp(`^${id} +not touched .*\\n {4}not in this run: `, 'm'))
    const some = promisesTable([held('R1'), held('R5')])
    assert.match(some, /^R1 +held {2}.*\n {4}FX .*\nR2 /m)
    assert.match(some, /^R5 +held in part .*\n {4}FX .*\n {4}not in this run: bench\/mix\.ts/m)
  })

  it('the table names existing files', () => {
    const paths = Object.values(coverage).flatMap((text) => text.match(/[\w/.-]+\.ts/g) ?? [])
    assert.ok(paths.length > 10)
    for (const path of paths) assert.ok(existsSync(new URL(`../../${path}`, import.meta.url)), path)
  })
})

describe('the list of faults', () => {
  it('the list of faults names each fault once, with the expected result', () => {
    const ids = faults.map(({ id }) => id)
    assert.equal(new Set(ids).size, ids.length)
    for (const { id, hypothesis } of faults) assert.ok(hypothesis.length > 80, id)
  })
})
