/** A provider that is built into the service. Its settings, kind and prices use its name. */
export interface NativeProvider {
  /** Display name. */
  title: string
  /** Its own address. Models at another address have no known price. */
  base_url: string
  /**
   * Whether a server at another address has the kind `openai_compatible`, unless it uses the first of the protocols.
   */
  kind_follows_address: boolean
  /** Its protocols: the first is the default at its own address, the last at any other. */
  protocols: readonly [ModelProtocol, ...ModelProtocol[]]
  /** Maximum temperature of its API, if it is lower than that of a configuration. */
  temperature_max?: number
  /** Prefix of a key, for examples. */
  key_example: string
}

/**
 * Native providers by name. The first configured one is the default provider. The settings are `<NAME>_API_KEY`,
 * `<NAME>_BASE_URL` and, for several protocols, `<NAME>_PROTOCOL`.
 */
export const nativeProviders = {
  openai: {
    title: 'OpenAI',
    base_url: 'https://api.openai.com/v1',
    kind_follows_address: true,
    protocols: ['responses', 'chat'],
    key_example: 'sk-…',
  },
  anthropic: {
    title: 'Anthropic',
    base_url: 'https://api.anthropic.com/v1',
    kind_follows_address: false,
    protocols: ['messages'],
    temperature_max: 1,
    key_example: 'sk-ant-…',
  },
} as const satisfies Record<string, NativeProvider>

export type NativeProviderName = keyof typeof nativeProviders

/** Maximum temperature of a provider, by its name or kind; undefined if it has no separate maximum. */
export function temperatureMaxOf(provider: string): number | undefined {
  return (nativeProviders as Readonly<Record<string, NativeProvider>>)[provider]?.temperature_max
}

/** Names of the native providers. */
export const nativeProviderNames = Object.keys(nativeProviders) as NativeProviderName[]

/** Protocols of model providers: OpenAI Responses, OpenAI Chat Completions, Anthropic Messages. */
export const modelProtocols = ['responses', 'chat', 'messages'] as const

export type ModelProtocol = (typeof modelProtocols)[number]
