import { nativeProviderNames, nativeProviders, type NativeProviderName } from '#contract/models/native-providers.ts'
import type { PriceTable } from '#contract/models/price-table.ts'
import { modelPrices, type ModelPrice } from '#contract/models/model-prices.ts'

/** What the prices of an organization's provider depend on. */
export interface PricedProvider {
  /** Whether its name has a price list that is for another address. */
  is_elsewhere: boolean
  /** Prices that the organization gave, by `provider/model`. */
  prices: PriceTable
}

/** Prices of models in this installation. */
export interface Prices {
  /**
   * The price of `provider/model`; null if it is unknown. `own` is the organization's provider of the model; left out for
   * a provider of the service.
   */
  of(model: string, own?: PricedProvider): ModelPrice | null
}

/** The error message for a call without a price under a budget in dollars. */
export function unknownPrice(model: string): string {
  return `The price of ${model} is unknown, so a budget in dollars cannot be enforced. Set it in CADRE_MODEL_PRICES, or in "prices" of your organization's model provider, or limit tokens.`
}

export interface PriceSettings {
  /** Prices of the operator, which take precedence over the list; null for unknown. */
  own: ReadonlyMap<string, ModelPrice | null>
  /** Providers with a price list that are reached at another address. The server there sets its own prices. */
  elsewhere: readonly string[]
}

/** The native providers that are reached at another address than their own. */
export function providersElsewhere(base_urls: Partial<Record<NativeProviderName, string | undefined>>): string[] {
  return nativeProviderNames.filter((name) => {
    const url = base_urls[name]
    return url !== undefined && URL.parse(url)?.hostname !== URL.parse(nativeProviders[name].base_url)?.hostname
  })
}

/** Looks prices up by exact name: the organization's for its provider, then the operator's, then those of the list. Nothing is guessed. */
export function makePrices({ own, elsewhere }: PriceSettings): Prices {
  return {
    of(model, provider) {
      const given = provider?.prices.get(model) ?? own.get(model)
      if (given !== undefined) return given
      const is_elsewhere = provider?.is_elsewhere ?? elsewhere.includes(model.slice(0, model.indexOf('/')))
      return is_elsewhere ? null : (modelPrices.get(model) ?? null)
    },
  }
}
