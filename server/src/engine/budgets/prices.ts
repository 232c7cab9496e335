import { nativeProviderNames, nativeProviders, type NativeProviderName } from '#contract/models/native-providers.ts'
import type { OwnProvider } from '../models/model.ts'
import { modelPrices, type ModelPrice } from '#contract/models/model-prices.ts'

/** What models cost here. */
export interface Prices {
  /**
   * The price of `provider/model`; null where it is not known. `own` is the organization's provider that it has; left out, the provider is
   * one of the service.
   */
  of(model: string, own?: Pick<OwnProvider, 'is_elsewhere' | 'prices'>): ModelPrice | null
}

/** Why a budget in dollars refuses a call of a model without a price, and what to do. */
export function unknownPrice(model: string): string {
  return `The price of ${model} is not known, so a budget in dollars cannot be kept. Set it in CADRE_MODEL_PRICES, or in "prices" of your organization's model provider, or limit tokens.`
}

export interface PriceSettings {
  /** The operator's own, which come before the list; null: not known. */
  own: ReadonlyMap<string, ModelPrice | null>
  /**
   * Providers that have a price list but are reached at another address than their own. The server there sets its own
   * prices.
   */
  elsewhere: readonly string[]
}

/** Which native providers are reached at another address than their own. */
export function providersElsewhere(base_urls: Partial<Record<NativeProviderName, string | undefined>>): string[] {
  return nativeProviderNames.filter((name) => {
    const url = base_urls[name]
    return url !== undefined && URL.parse(url)?.hostname !== URL.parse(nativeProviders[name].base_url)?.hostname
  })
}

/** Prices by exact name: those of the organization for its provider, the operator's, then those of the list. Nothing is guessed. */
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
