/** A provider that the service knows by name: its settings, its kind and its prices are named after it. */
export interface NativeProvider {
  /** What people call it. */
  title: string
  /** Its own address. Models at another one have no known price. */
  base_url: string
  /** Whether a server at another address is of the kind `openai_compatible`, unless it speaks the first of the protocols. */
  kind_follows_address: boolean
  /** The protocols that it can be spoken to in: the first at its own address, the last at any other. */
  protocols: readonly [ModelProtocol, ...ModelProtocol[]]
  /** The highest temperature that its API takes, where that is below what a configuration may say. */
  temperature_max?: number
  /** The beginning of a key, for examples. */
  key_example: string
}

/**
 * Every native provider by the name before the slash of its models, in the order in which one of them is the default
 * provider. Its variables are `<NAME>_API_KEY`, `<NAME>_BASE_URL` and, where it has several protocols, `<NAME>_PROTOCOL`.
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

/** The highest temperature that a provider takes, by its name or its kind; undefined where any is taken. */
export function temperatureMaxOf(provider: string): number | undefined {
  return (nativeProviders as Readonly<Record<string, NativeProvider>>)[provider]?.temperature_max
}

/** Their names. */
export const nativeProviderNames = Object.keys(nativeProviders) as NativeProviderName[]

/** The protocols that providers are spoken to in: OpenAI Responses, Chat Completions, Anthropic Messages. */
export const modelProtocols = ['responses', 'chat', 'messages'] as const

export type ModelProtocol = (typeof modelProtocols)[number]
