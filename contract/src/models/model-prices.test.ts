import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  billionthsOf,
  costOf,
  dollarsOf,
  highestRates,
  modelPriceList,
  modelPrices,
  type ModelPrice,
} from './model-prices.ts'

const priced = (name: string): ModelPrice => {
  const price = modelPrices.get(name)
  assert.ok(price, name)
  return price
}
const tokens = fc.integer({ min: 0, max: 2_000_000 })

describe('the list of prices', () => {
  it('the list of prices has its date and sources', () => {
    assert.match(modelPriceList.date, /^\d{4}-\d\d-\d\d$/)
    assert.ok(modelPriceList.sources.every((url) => url.startsWith('https://')))
  })

  it('the list of prices has models by all their names, including dated ones, and no similar names', () => {
    assert.equal(priced('openai/gpt-4o-mini-2024-07-18'), priced('openai/gpt-4o-mini'))
    for (const name of ['gpt-4o-mini', 'openai/gpt-4o-mini-2099-01-01', 'OpenAI/gpt-4o-mini', 'ollama/gpt-4o-mini'])
      assert.equal(modelPrices.get(name), undefined, name)
  })

  it('listed prices give exact costs, and long input is never cheaper', () => {
    for (const [name, { long, ...short }] of modelPrices) {
      for (const [member, dollars] of Object.entries({ ...short }))
        assert.ok(Math.abs(dollars * 1000 - Math.round(dollars * 1000)) < 1e-9, `${name} ${member}`)
      assert.ok(short.cached_input <= short.input, name)
      if (long) assert.ok(long.input > short.input && long.output > short.output, name)
    }
  })
})

describe('the cost of a call', () => {
  it('the cost of a call equals what the provider charges', () => {
    const usage = { input_tokens: 1000, output_tokens: 500, cached_tokens: 300 }
    assert.equal(dollarsOf(costOf(priced('openai/gpt-4o-mini'), usage)!), 0.0004275)
    assert.equal(costOf(priced('builtin/echo'), usage), 0)
  })

  it('a call with long input is charged at the long price as a whole', () => {
    const haiku = priced('anthropic/claude-haiku-5-5')
    const call = (input_tokens: number) => costOf(haiku, { input_tokens, output_tokens: 1000, cached_tokens: 0 })
    assert.equal(dollarsOf(call(100_000)!), 0.0105)
    assert.equal(dollarsOf(call(100_001)!), 0.0525005)
  })

  it('the cost of a call counts cache writes once, and is unknown if they have no price', () => {
    const usage = { input_tokens: 1000, output_tokens: 0, cached_tokens: 400, cache_write_tokens: 600 }
    assert.equal(dollarsOf(costOf(priced('openai/gpt-6.1-sol'), usage)!), 0.00154)
    assert.equal(costOf(priced('openai/gpt-4o'), usage), null)
  })

  it('the cost of a call never exceeds the highest rates', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...modelPrices.keys()),
        tokens,
        tokens,
        tokens,
        tokens,
        (name, input, output, cached, written) => {
          const price = { ...priced(name), cache_write: priced(name).cache_write ?? 0 }
          const usage = { input_tokens: input, output_tokens: output, cached_tokens: cached }
          const cost = costOf(price, {
            ...usage,
            cache_write_tokens: price.long && !price.long.cache_write ? 0 : written,
          })
          const rates = highestRates(price, input)
          assert.ok(cost !== null && cost * 1000 <= input * rates.input + output * rates.output + 500)
        },
      ),
    )
  })

  it('costs of calls add up without drift', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 10 ** 12 }), { maxLength: 50 }), (costs) => {
        const sum = costs.reduce((all, one) => billionthsOf(dollarsOf(all)) + billionthsOf(dollarsOf(one)), 0)
        assert.equal(
          sum,
          costs.reduce((all, one) => all + one, 0),
        )
        assert.equal(billionthsOf(JSON.parse(JSON.stringify(dollarsOf(sum)))), sum)
      }),
    )
  })
})
