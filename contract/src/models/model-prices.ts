/** Prices of a model in US dollars per million tokens, with up to six decimals. */
export interface ModelPrice {
  input: number
  /** Input that the provider read from its cache. */
  cached_input: number
  /** Input that the provider wrote to its cache, if it charges for that and reports the tokens; absent if unknown. */
  cache_write?: number
  output: number
  /** Prices of a whole call whose input exceeds so many tokens. */
  long?: { above_input_tokens: number } & Omit<ModelPrice, 'long'>
}

/**
 * When the list was compiled, and its sources: standard rates of the providers' own APIs, without batch discounts.
 */
export const modelPriceList = {
  date: '2026-11-24',
  sources: [
    'https://developers.openai.com/api/docs/pricing',
    'https://developers.openai.com/api/docs/models',
    'https://developers.openai.com/api/docs/guides/prompt-caching',
    'https://github.com/BerriAI/litellm/discussions/52347',
    'https://platform.claude.com/docs/en/about-claude/pricing',
    'https://platform.claude.com/docs/en/models/overview',
  ],
} as const

const price = (input: number, cached_input: number, output: number, cache_write?: number): ModelPrice => ({
  input,
  cached_input,
  ...(cache_write === undefined ? {} : { cache_write }),
  output,
})

/** OpenAI charges a call with more than 272,000 tokens of input twice for input and one and a half times for output. */
const withLong272k = (short: ModelPrice): ModelPrice => {
  const { input, cached_input, cache_write, output } = short
  const double = cache_write === undefined ? undefined : cache_write * 2
  return {
    ...short,
    long: { above_input_tokens: 272_000, ...price(input * 2, cached_input * 2, output * 1.5, double) },
  }
}

/**
 * Models of OpenAI and Anthropic, each with all names that its provider documents; dated names cost the same as the
 * undated one. A model that is not listed has no known price; prices are not guessed from names.
 */
const listed: readonly [names: string, ModelPrice][] = [
  ['openai/gpt-6.2-astra', withLong272k(price(8, 0.4, 40, 10))],
  ['openai/gpt-6.2-sol', withLong272k(price(2, 0.1, 10, 2.5))],
  ['openai/gpt-6.1-sol', withLong272k(price(2, 0.1, 10, 2.5))],
  ['openai/gpt-6.1-terra', withLong272k(price(1, 0.05, 5, 1.25))],
  ['openai/gpt-6-astra', withLong272k(price(10, 1, 50, 12.5))],
  ['openai/gpt-6-sol', withLong272k(price(2, 0.2, 10, 2.5))],
  ['openai/gpt-6-luna', withLong272k(price(0.1, 0.01, 0.5, 0.125))],
  // The price of a promotion that OpenAI promised until 2026-11-21 at least; before it: 5, 0.5, 30, 6.25.
  ['openai/gpt-5.6-sol openai/gpt-5.6', withLong272k(price(4, 0.4, 20, 5))],
  ['openai/gpt-5.6-terra', withLong272k(price(2, 0.2, 12, 2.5))],
  ['openai/gpt-5.6-luna', withLong272k(price(0.2, 0.02, 1.2, 0.25))],
  ['openai/gpt-5.5 openai/gpt-5.5-2026-04-23', withLong272k(price(5, 0.5, 30))],
  ['openai/gpt-5.4 openai/gpt-5.4-2026-03-05', withLong272k(price(2.5, 0.25, 15))],
  ['openai/gpt-5.4-mini openai/gpt-5.4-mini-2026-03-17', price(0.75, 0.075, 4.5)],
  ['openai/gpt-5.4-nano openai/gpt-5.4-nano-2026-03-17', price(0.2, 0.02, 1.25)],
  ['openai/gpt-5.2 openai/gpt-5.2-2025-12-11', price(1.75, 0.175, 14)],
  ['openai/gpt-5.1 openai/gpt-5.1-2025-11-13', price(1.25, 0.125, 10)],
  ['openai/gpt-5 openai/gpt-5-2025-08-07', price(1.25, 0.125, 10)],
  ['openai/gpt-5-mini openai/gpt-5-mini-2025-08-07', price(0.25, 0.025, 2)],
  ['openai/gpt-5-nano openai/gpt-5-nano-2025-08-07', price(0.05, 0.005, 0.4)],
  ['openai/gpt-4.1 openai/gpt-4.1-2025-04-14', price(2, 0.5, 8)],
  ['openai/gpt-4.1-mini openai/gpt-4.1-mini-2025-04-14', price(0.4, 0.1, 1.6)],
  ['openai/gpt-4.1-nano openai/gpt-4.1-nano-2025-04-14', price(0.1, 0.025, 0.4)],
  ['openai/gpt-4o openai/gpt-4o-2024-08-06 openai/gpt-4o-2024-11-20', price(2.5, 1.25, 10)],
  ['openai/gpt-4o-mini openai/gpt-4o-mini-2024-07-18', price(0.15, 0.075, 0.6)],
  ['openai/o3 openai/o3-2025-04-16', price(2, 0.5, 8)],
  ['openai/o4-mini openai/o4-mini-2025-04-16', price(1.1, 0.275, 4.4)],
  ['openai/o3-mini openai/o3-mini-2025-01-31', price(1.1, 0.55, 4.4)],
  ['openai/o1 openai/o1-2024-12-17', price(15, 7.5, 60)],

  ['anthropic/claude-fable-5-2', price(8, 0.2, 40, 10)],
  ['anthropic/claude-fable-5-1', price(10, 0.25, 50, 12.5)],
  ['anthropic/claude-fable-5', price(10, 1, 50, 12.5)],
  ['anthropic/claude-opus-5-5', price(4, 0.2, 20, 5)],
  ['anthropic/claude-opus-5', price(5, 0.5, 25, 6.25)],
  ['anthropic/claude-opus-4-8', price(5, 0.5, 25, 6.25)],
  ['anthropic/claude-opus-4-7', price(5, 0.5, 25, 6.25)],
  ['anthropic/claude-opus-4-6', price(5, 0.5, 25, 6.25)],
  ['anthropic/claude-opus-4-5 anthropic/claude-opus-4-5-20251101', price(5, 0.5, 25, 6.25)],
  ['anthropic/claude-sonnet-5-5', price(2, 0.1, 10, 2.5)],
  ['anthropic/claude-sonnet-5', price(2, 0.2, 10, 2.5)],
  ['anthropic/claude-sonnet-4-6', price(3, 0.3, 15, 3.75)],
  ['anthropic/claude-sonnet-4-5 anthropic/claude-sonnet-4-5-20250929', price(3, 0.3, 15, 3.75)],
  [
    'anthropic/claude-haiku-5-5',
    { ...price(0.1, 0.01, 0.5, 0.125), long: { above_input_tokens: 100_000, ...price(0.5, 0.05, 2.5, 0.625) } },
  ],
  ['anthropic/claude-haiku-4-5 anthropic/claude-haiku-4-5-20251001', price(1, 0.1, 5, 1.25)],

  // Built-in models use no provider.
  ['builtin/echo builtin/script', price(0, 0, 0, 0)],
]

/** The list by exact name, `provider/model`. */
export const modelPrices: ReadonlyMap<string, ModelPrice> = new Map(
  listed.flatMap(([names, one]) => names.split(' ').map((name) => [name, one] as const)),
)

/** Tokens of one call as the provider counted them. `input_tokens` includes the cached and the cache-written ones. */
export interface PricedUsage {
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  cache_write_tokens?: number
}

/**
 * Cost of a call in whole billionths of a dollar. Exact for prices with up to three decimals, otherwise rounded once
 * to the nearest. Null if a price is missing for tokens that were charged.
 */
export function costOf(price: ModelPrice, usage: PricedUsage): number | null {
  const { input_tokens, output_tokens, cached_tokens, cache_write_tokens = 0 } = usage
  const { long } = price
  const rates = long && input_tokens > long.above_input_tokens ? long : price
  if (cache_write_tokens > 0 && rates.cache_write === undefined) return null
  const cached = Math.min(cached_tokens, input_tokens)
  const written = Math.min(cache_write_tokens, input_tokens - cached)
  const millionths =
    amount(input_tokens - cached - written, rates.input) +
    amount(cached, rates.cached_input) +
    amount(written, rates.cache_write ?? 0) +
    amount(output_tokens, rates.output)
  return Number((millionths + 500n) / 1000n)
}

/**
 * Highest cost of an input token and an output token in a call with so much input, in whole trillionths of a dollar.
 */
export function highestRates(price: ModelPrice, input_tokens: number): { input: number; output: number } {
  const { long } = price
  const rates = long && input_tokens > long.above_input_tokens ? long : price
  const { input, cached_input, cache_write = 0, output } = rates
  return { input: millionthsOf(Math.max(input, cached_input, cache_write)), output: millionthsOf(output) }
}

function amount(tokens: number, dollars: number): bigint {
  return BigInt(tokens) * BigInt(millionthsOf(dollars))
}

function millionthsOf(dollars: number): number {
  return Math.round(dollars * 1e6)
}

/** Converts billionths of a dollar to dollars. Exact in both directions up to nine million dollars. */
export function dollarsOf(billionths: number): number {
  return billionths / 1e9
}

/** Converts dollars to whole billionths. */
export function billionthsOf(dollars: number): number {
  return Math.round(dollars * 1e9)
}
