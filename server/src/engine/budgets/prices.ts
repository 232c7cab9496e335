import { nativeProviderNames, nativeProviders, type NativeProviderName } from '#contract/models/native-providers.ts'
import { modelPrices, type ModelPrice } from '#contract/models/model-prices.ts'

/** What models cost here. */
export interface Prices {
  /**
   * The price of `provider/model`; null where it is not known. `is_elsewhere` says whether its provider is reached at another address
   * than its price list is for; as the service is configured where it is left out.
   */
  of(model: string, is_elsewhere?: boolean): ModelPrice | null
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

/** Prices by exact name: the operator's, then those of the list. Nothing is guessed. */
export function makePrices({ own, elsewhere }: PriceSettings): Prices {
  return {
    of(model, is_elsewhere) {
      const given = own.get(model)
      if (given !== undefined) return given
      const provider = model.slice(0, model.indexOf('/'))
      return (is_elsewhere ?? elsewhere.includes(provider)) ? null : (modelPrices.get(model) ?? null)
    },
  }
}
