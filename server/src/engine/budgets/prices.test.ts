import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readPriceTable } from '#contract/models/price-table.ts'
import { makePrices, providersElsewhere } from './prices.ts'

const none = new Map()

it('a model has the price in the list, and no price if it is not listed', () => {
  const prices = makePrices({ own: none, elsewhere: [] })
  assert.equal(prices.of('openai/gpt-4o-mini')?.input, 0.15)
  assert.equal(prices.of('builtin/echo')?.output, 0)
  for (const name of ['ollama/llama3', 'openai/gpt-0', 'gpt-4o-mini', '']) assert.equal(prices.of(name), null, name)
})

it("a provider's price list does not apply to a server at another address", () => {
  const prices = makePrices({ own: none, elsewhere: ['openai'] })
  assert.equal(prices.of('openai/gpt-4o-mini'), null)
  assert.deepEqual(providersElsewhere({ openai: 'http://127.0.0.1:8000/v1', anthropic: undefined }), ['openai'])
  const homes = { openai: 'https://api.openai.com/v1', anthropic: 'https://api.anthropic.com/v1' }
  assert.deepEqual(providersElsewhere(homes), [])
  assert.ok(prices.of('anthropic/claude-opus-5-5'))
})

it("an operator's price comes first, and null takes one away", () => {
  const own = readPriceTable({
    'ollama/llama3': { input: 0, output: 0 },
    'openai/gpt-4o': {
      input: 1,
      cached_input: 0.5,
      cache_write: 2,
      output: 3,
      long: { above_input_tokens: 10, input: 4, output: 5 },
    },
    'openai/gpt-4o-mini': null,
  })!
  const prices = makePrices({ own, elsewhere: ['openai'] })
  assert.deepEqual(prices.of('ollama/llama3'), { input: 0, cached_input: 0, output: 0 })
  assert.deepEqual(prices.of('openai/gpt-4o'), {
    input: 1,
    cached_input: 0.5,
    cache_write: 2,
    output: 3,
    long: { above_input_tokens: 10, input: 4, cached_input: 4, output: 5 },
  })
  assert.equal(prices.of('openai/gpt-4o-mini'), null)
})

it("a provider of an organization has the list's prices where it is reached at the address that the list is for", () => {
  const prices = makePrices({ own: none, elsewhere: ['openai'] })
  assert.equal(prices.of('openai/gpt-4o-mini', { is_elsewhere: false, prices: none })?.input, 0.15)
  assert.equal(prices.of('anthropic/claude-opus-5-5', { is_elsewhere: true, prices: none }), null)
})

it("an organization's price for its own provider comes before the operator's, and is nothing to the service's provider", () => {
  const own = readPriceTable({ 'acme/large': { input: 1, output: 1 } })!
  const prices = makePrices({ own, elsewhere: [] })
  const provider = { is_elsewhere: true, prices: readPriceTable({ 'acme/large': { input: 7, output: 9 } })! }
  assert.deepEqual(prices.of('acme/large', provider), { input: 7, cached_input: 7, output: 9 })
  assert.equal(prices.of('acme/large')?.input, 1)
  assert.equal(prices.of('acme/small', provider), null)
})

it('a price table of the wrong form is rejected', () => {
  const price = { input: 1, output: 1 }
  for (const json of [
    [],
    null,
    { 'gpt-4o': price },
    { 'openai/gpt-4o': 1 },
    { 'openai/gpt-4o': { input: 1 } },
    { 'openai/gpt-4o': { ...price, output: '1' } },
    { 'openai/gpt-4o': { ...price, input: -1 } },
    { 'openai/gpt-4o': { ...price, inputs: 1 } },
    { 'openai/gpt-4o': { ...price, long: { input: 1, output: 1 } } },
  ])
    assert.equal(readPriceTable(json), undefined, JSON.stringify(json))
})
