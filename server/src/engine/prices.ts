import { modelPrices, type ModelPrice } from '#contract/model-prices.ts'

/** What models cost here. */
export interface Prices {
  /** The price of `provider/model`; null where it is not known. */
  of(model: string): ModelPrice | null
}

export interface PriceSettings {
  /** The operator's own, which come before the list; null: not known. */
  own: ReadonlyMap<string, ModelPrice | null>
  /**
   * Providers that the list has prices of, but that are reached at another address than their own: whoever answers there
   * charges what they charge.
   */
  elsewhere: readonly string[]
}

const homes = { openai: 'api.openai.com', anthropic: 'api.anthropic.com' }

/** Which providers of the list are reached at another address than their own. */
export function providersElsewhere(base_urls: { openai: string | undefined; anthropic: string | undefined }): string[] {
  const isElsewhere = (url: string | undefined, home: string) => url !== undefined && URL.parse(url)?.hostname !== home
  return [
    ...(isElsewhere(base_urls.openai, homes.openai) ? ['openai'] : []),
    ...(isElsewhere(base_urls.anthropic, homes.anthropic) ? ['anthropic'] : []),
  ]
}

/** Prices by exact name: the operator's, then those of the list. Nothing is guessed. */
export function makePrices({ own, elsewhere }: PriceSettings): Prices {
  return {
    of(model) {
      const given = own.get(model)
      if (given !== undefined) return given
      const provider = model.slice(0, model.indexOf('/'))
      return elsewhere.includes(provider) ? null : (modelPrices.get(model) ?? null)
    },
  }
}
