import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { billionthsOf, costOf, dollarsOf, modelPrices, type ModelPrice } from '#contract/models/model-prices.ts'
import { isNearlySpent, outputDefault, outputMin, ownBudget, reserve, settle, stateOf } from './budgets.ts'
import { noUsage } from '../journal/task-rows.ts'
import type { BudgetState, Reservation, Need } from '../task.ts'

const now = '2026-11-20T09:30:00.000Z'
const price: ModelPrice = { input: 1, cached_input: 0.1, output: 10 }
const need: Need = { input_tokens: 100, max_output_tokens: undefined, price }

function budget(limits: { max_cost_usd?: number | null; max_tokens?: number | null }, more: object = {}): BudgetState {
  const row = {
    id: 'budget_1',
    scope: 'agent' as const,
    subject: 'agent_1',
    period: 'day' as const,
    max_cost_usd: null,
    max_tokens: null,
    warn_percent: 80,
    spent_cost_usd: 0,
    spent_tokens: 0,
    held_cost_usd: 0,
    held_tokens: 0,
    window_start: '2026-11-20T00:00:00.000Z',
    warned: false,
  }
  return stateOf({ ...row, ...limits, ...more }, now)
}

describe('a reservation', () => {
  it('without a budget nothing is reserved, and the maximum output is unchanged', () => {
    assert.deepEqual(reserve([], need), { outcome: 'held', hold: null, max_output_tokens: undefined })
  })

  it('a reservation holds input and output in each budget, and bounds the output', () => {
    const both = [budget({ max_tokens: 100_000 }), budget({ max_cost_usd: 1 }, { id: 'budget_2' })]
    const held = reserve(both, need)
    assert.deepEqual(held, {
      outcome: 'held',
      hold: { tokens: 100 + outputDefault, cost_usd: 0.04106, budget_ids: ['budget_1', 'budget_2'] },
      max_output_tokens: outputDefault,
    })
    assert.deepEqual(
      both.map(({ held_tokens, held_cost }) => [held_tokens, held_cost]),
      both.map(() => [4196, 41_060_000]),
    )
  })

  it('a reservation lowers the maximum output to what the budgets leave, and is refused below a few tokens', () => {
    const left = (max_tokens: number) => reserve([budget({ max_tokens })], need)
    assert.deepEqual(left(100 + 500), {
      outcome: 'held',
      hold: { tokens: 600, cost_usd: dollarsOf(billionthsOf(0.0051)), budget_ids: ['budget_1'] },
      max_output_tokens: 500,
    })
    assert.equal(left(100 + outputMin).outcome, 'held')
    const refused = left(100 + outputMin - 1)
    assert.ok(refused.outcome === 'refused' && !refused.passing)
    assert.equal(refused.resets_at, '2026-11-21T00:00:00.000Z')
  })

  it("a reservation of few output tokens is accepted if the agent's max_tokens is as low", () => {
    const small = { ...need, max_output_tokens: 3 }
    assert.equal(reserve([budget({ max_tokens: 103 })], small).outcome, 'held')
    assert.equal(reserve([budget({ max_tokens: 102 })], small).outcome, 'refused')
  })

  it('a reservation waits for the reservations of other calls instead of shortening its answer', () => {
    const shared = budget({ max_tokens: 6000 })
    const first = reserve([shared], need)
    const second = reserve([shared], need)
    assert.ok(second.outcome === 'refused' && second.passing)
    assert.ok(first.outcome === 'held')
    settle([shared], first.hold, { tokens: 110, cost_usd: null })
    assert.equal(reserve([shared], need).outcome, 'held')
  })

  it('a refused reservation changes no budget', () => {
    const wide = budget({ max_tokens: 100_000 })
    assert.equal(reserve([wide, budget({ max_tokens: 10 }, { id: 'budget_2' })], need).outcome, 'refused')
    assert.deepEqual([wide.held_tokens, wide.changed], [0, false])
  })

  it('a refused reservation waits for the last reset of the spent budgets, and forever if one never resets', () => {
    const month = budget({ max_tokens: 0 }, { period: 'month', window_start: '2026-11-01T00:00:00.000Z' })
    const day = budget({ max_tokens: 0 }, { id: 'budget_2' })
    const resets = (...all: BudgetState[]) => {
      const result = reserve(all, need)
      return result.outcome === 'refused' ? result.resets_at : result.outcome
    }
    assert.equal(resets(day, month), '2026-12-01T00:00:00.000Z')
    assert.equal(resets(day, budget({ max_tokens: 0 }, { period: 'total' })), null)
  })

  it('a cost limit refuses a call whose cost is unknown', () => {
    const unknown = { ...need, price: null }
    assert.equal(reserve([budget({ max_cost_usd: 1 })], unknown).outcome, 'unpriced')
    assert.equal(reserve([budget({ max_tokens: 10_000 })], unknown).outcome, 'held')
  })

  it('a call without cost fits every cost budget, even a spent one', () => {
    const free = { ...need, price: { input: 0, cached_input: 0, output: 0 } }
    assert.equal(reserve([budget({ max_cost_usd: 0 })], free).outcome, 'held')
  })

  it('the whole usage of a task counts against its limits', () => {
    const usage = { ...noUsage, input_tokens: 60, output_tokens: 30 }
    const own = ownBudget('task_1', { max_tokens: 206 }, usage)!
    assert.deepEqual(reserve([own], need), {
      outcome: 'held',
      hold: { tokens: 116, cost_usd: 0.00026, budget_ids: [] },
      max_output_tokens: 16,
    })
    assert.equal(ownBudget('task_1', { max_steps: 5, max_cost_usd: null }, usage), undefined)
  })
})

describe('a window', () => {
  it('a new window resets what is spent, and keeps reservations', () => {
    const spent = { spent_tokens: 900, held_tokens: 50, warned: true }
    const old = budget({ max_tokens: 1000 }, { ...spent, window_start: '2026-11-19T00:00:00.000Z' })
    assert.deepEqual([old.spent_tokens, old.held_tokens, old.warned], [0, 50, false])
    const current = budget({ max_tokens: 1000 }, spent)
    assert.deepEqual([current.spent_tokens, current.warned], [900, true])
  })
})

describe('settling', () => {
  it('settling a call warns once when 80 % of a budget are spent', () => {
    const one = budget({ max_tokens: 1000 })
    assert.deepEqual(settle([one], null, { tokens: 799, cost_usd: null }), [])
    assert.deepEqual(settle([one], null, { tokens: 1, cost_usd: null }), [one])
    assert.deepEqual(settle([one], null, { tokens: 100, cost_usd: null }), [])
    assert.ok(isNearlySpent(one))
  })

  it('settling a call counts for a budget that was created while the call was in flight', () => {
    const late = budget({ max_tokens: 1000 }, { id: 'budget_9' })
    settle([late], { tokens: 500, cost_usd: 0, budget_ids: ['budget_1'] }, { tokens: 20, cost_usd: null })
    assert.deepEqual([late.held_tokens, late.spent_tokens], [0, 20])
  })
})

/** A call as it might happen: how far off its estimate was, and when it ends among the others. */
const call = fc.record({
  input_tokens: fc.integer({ min: 0, max: 400_000 }),
  error: fc.integer({ min: 0, max: 300 }),
  max_output_tokens: fc.option(fc.integer({ min: 1, max: 10_000 }), { nil: undefined }),
  output: fc.double({ min: 0, max: 1, noNaN: true }),
  model: fc.constantFrom(...modelPrices.keys()),
  budgets: fc.subarray([0, 1, 2]),
  ends: fc.boolean(),
  fails: fc.boolean(),
})

it('in any order of events, budgets are overspent by at most the errors of the estimates, and no reservation is left', () => {
  const limits = fc.record({
    max_tokens: fc.option(fc.integer({ min: 0, max: 2_000_000 })),
    max_cost_usd: fc.option(fc.integer({ min: 0, max: 20_000_000_000 }).map(dollarsOf)),
  })
  fc.assert(
    fc.property(fc.tuple(limits, limits, limits), fc.array(call, { maxLength: 40 }), (limited, calls) => {
      const all = limited.map((one, i) => budget(one, { id: `budget_${i}` }))
      const wrong = all.map(() => ({ tokens: 0, cost: 0 }))
      const open: (() => void)[] = []
      const check = (): void =>
        all.forEach((one, i) => {
          const off = wrong[i]!
          assert.ok(
            one.max_tokens === null || one.spent_tokens + one.held_tokens <= Math.max(one.max_tokens, 0) + off.tokens,
          )
          assert.ok(one.max_cost === null || one.spent_cost + one.held_cost <= one.max_cost + off.cost)
        })
      for (const { input_tokens, error, max_output_tokens, output, model, budgets, ends, fails } of calls) {
        const mine = budgets.map((i) => all[i]!)
        const priced = modelPrices.get(model)!
        const reserved = reserve(mine, { input_tokens, max_output_tokens, price: priced })
        check()
        if (reserved.outcome !== 'held') continue
        const output_tokens = Math.floor(output * (reserved.max_output_tokens ?? 10_000))
        const used = { input_tokens: input_tokens + error, output_tokens, cached_tokens: 0 }
        const cost = costOf(priced, used)!
        const estimated = costOf(priced, { ...used, input_tokens })!
        const end = (): void => {
          for (const i of fails ? [] : budgets) {
            wrong[i]!.tokens += error
            wrong[i]!.cost += cost - estimated + 1
          }
          const tokens = used.input_tokens + output_tokens
          settle(mine, reserved.hold, fails ? undefined : { tokens, cost_usd: dollarsOf(cost) })
          check()
        }
        if (ends) end()
        else open.push(end)
      }
      for (const end of open) end()
      for (const one of all) assert.deepEqual([one.held_tokens, one.held_cost], [0, 0])
    }),
    { numRuns: 300 },
  )
})

it('a reservation is the same after it was stored as JSON', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 ** 15 }), (cost) => {
      const shared = budget({ max_cost_usd: 1 })
      shared.held_cost = cost
      const hold: Reservation = { tokens: 0, cost_usd: dollarsOf(cost), budget_ids: ['budget_1'] }
      settle([shared], JSON.parse(JSON.stringify(hold)) as Reservation, undefined)
      assert.equal(shared.held_cost, 0)
    }),
  )
})
