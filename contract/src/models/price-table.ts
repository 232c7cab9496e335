import { isObject } from '../core/merge-patch.ts'
import { bounds } from '../core/limits.ts'
import type { ModelPrice } from './model-prices.ts'

/** Prices by `provider/model`; null marks a price as unknown. */
export type PriceTable = ReadonlyMap<string, ModelPrice | null>

const rates = ['input', 'cached_input', 'cache_write', 'output'] as const

/**
 * Parses `{"provider/model": {"input", "cached_input", "cache_write", "output", "long"} | null}` in US dollars per
 * million tokens. `cached_input` defaults to `input`. Returns undefined for any other form: a wrong price is worse
 * than none.
 */
export function readPriceTable(json: unknown): PriceTable | undefined {
  if (!isObject(json)) return undefined
  const table = new Map<string, ModelPrice | null>()
  for (const [name, given] of Object.entries(json)) {
    const price = given === null ? null : readPrice(given)
    if (price === undefined || !/^[^/\s]+\/\S/.test(name)) return undefined
    table.set(name, price)
  }
  return table
}

function readPrice(given: unknown): ModelPrice | undefined {
  if (!isObject(given)) return undefined
  const { long, ...short } = given
  const price = readRates(short)
  if (!price || long === undefined) return price
  if (!isObject(long)) return undefined
  const { above_input_tokens, ...more } = long
  const beyond = readRates(more)
  if (!beyond || !Number.isSafeInteger(above_input_tokens) || Number(above_input_tokens) < 0) return undefined
  return { ...price, long: { above_input_tokens: Number(above_input_tokens), ...beyond } }
}

function readRates(given: Record<string, unknown>): ModelPrice | undefined {
  const known = Object.entries(given).every(([name, dollars]) => isRate(name) && isAmount(dollars))
  const { input, cached_input = input, cache_write, output } = given
  if (!known || !isAmount(input) || !isAmount(cached_input) || !isAmount(output)) return undefined
  return { input, cached_input, ...(isAmount(cache_write) ? { cache_write } : {}), output }
}

function isRate(name: string): boolean {
  return rates.some((rate) => rate === name)
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= bounds.model_price_usd
}
