import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeChance, testSeed } from '../../server/test/chance.ts'
import type { Fault } from './fault.ts'
import { runFault } from './fault.ts'
import { watchStandstill } from './standstill.ts'

/** The short form of a fault as a test; `CADRE_TEST_SEED` has one again. */
export function shortTest(fault: Fault): void {
  test(`${fault.id}: ${fault.title}`, async (t) => {
    const chance = makeChance(testSeed())
    t.diagnostic(`CADRE_TEST_SEED=${chance.seed}`)
    const standstill = await watchStandstill()
    t.after(standstill.stop)
    const say = (text: string): void => t.diagnostic(text)
    const findings = await runFault(fault, { chance, short: true, say, standstill })
    assert.deepEqual(
      findings.filter(({ verdict }) => verdict === 'broken'),
      [],
      `CADRE_TEST_SEED=${chance.seed}`,
    )
    assert.ok(findings.length > 0)
  })
}
