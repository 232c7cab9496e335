import { echoModel } from './builtin-echo.ts'
import { scriptModel } from './builtin-script.ts'
import { type Model, ModelError } from './model.ts'
import { type CallLimits, callLimits } from './model-watch.ts'
import { makeModelWires } from './model-wires.ts'
import { makeProviderModel } from './provider-model.ts'
import { anthropicBaseUrl, ollamaBaseUrl, openaiBaseUrl, type Provider } from './providers.ts'

export interface ModelSettings {
  /** Configured by a key, a base URL or both; another base URL than OpenAI's own needs no key. */
  openai?: { api_key?: string | undefined; base_url?: string | undefined }
  anthropic?: { api_key?: string | undefined; base_url?: string | undefined }
  /** Further servers that speak the OpenAI protocol, by name. One named `ollama` replaces the default one. */
  providers?: readonly { name: string; base_url: string; api_key?: string | undefined }[]
  /** The model of agents that name none. */
  default_model: string
}

/** Where models come from. */
export interface Models {
  default_model: string
  /**
   * The model behind a name, and the name that its provider knows it by. `provider/model` names both. A name without a
   * known provider in front goes to the default provider: OpenAI where it is configured, whatever its base URL, else
   * the first of `providers`, else Anthropic. If the default provider is OpenAI itself or Anthropic, whose names have
   * no slash, then an unknown word before a slash is an error.
   *
   * Throws `ModelError` `provider_not_configured` or `model_not_found`; whether a provider has a model, only a call
   * tells. Nothing is connected or loaded here.
   */
  resolve(name: string): { model: Model; name: string }
}

const builtins = new Map<string, Model>([
  ['echo', echoModel],
  ['script', scriptModel],
])
/** Names of the models that need no provider. */
export const builtinModels = [...builtins.keys()].map((name) => `builtin/${name}`)
const builtinNames = builtinModels.join(' and ')

/** Makes the models that the settings open. `builtin/…` and `ollama/…` are always there. */
export function makeModels(settings: ModelSettings, { limits = callLimits }: { limits?: CallLimits } = {}): Models {
  const wires = makeModelWires()
  const providers = listProviders(settings)
  const models = new Map(providers.map((provider) => [provider.name, makeProviderModel(provider, { wires, limits })]))
  const fallback = defaultProvider(settings, providers)

  const resolve = (full: string): { model: Model; name: string } => {
    const [provider, name] = split(full)
    if (provider === 'builtin') {
      const model = builtins.get(name)
      if (!model) throw fail('model_not_found', `There is no built-in model ${full}; ${builtinNames} are there.`)
      return { model, name }
    }
    if (full === '' || name === '') throw fail('model_not_found', `"${full}" names no model.`)
    const named = provider === undefined ? undefined : models.get(provider)
    if (named) return { model: named, name }

    const isKnown = provider === 'openai' || provider === 'anthropic'
    const takesSlashes = fallback?.kind === 'openai_compatible'
    const model = fallback && models.get(fallback.name)
    if (isKnown || !model || (provider !== undefined && !takesSlashes)) throw notConfigured(full, provider)
    return { model, name: full }
  }
  return { default_model: settings.default_model, resolve }
}

/** `provider/model` in two; a name without a slash has no provider. The model's part may have slashes of its own. */
function split(full: string): [string | undefined, string] {
  const slash = full.indexOf('/')
  return slash < 0 ? [undefined, full] : [full.slice(0, slash), full.slice(slash + 1)]
}

/** The providers that the settings open, `ollama` among them. */
export function listProviders({ openai, anthropic, providers = [] }: ModelSettings): Provider[] {
  const list = new Map<string, Provider>()
  list.set('ollama', { name: 'ollama', kind: 'openai_compatible', base_url: ollamaBaseUrl, api_key: undefined })
  for (const { name, base_url, api_key } of providers)
    list.set(name, { name, kind: 'openai_compatible', base_url, api_key })
  if (openai?.api_key || openai?.base_url) {
    const base_url = openai.base_url || openaiBaseUrl
    // OpenAI's own models have rules that its library knows; every other server gets the plain protocol.
    const kind = URL.parse(base_url)?.hostname === 'api.openai.com' ? 'openai' : 'openai_compatible'
    list.set('openai', { name: 'openai', kind, base_url, api_key: openai.api_key || undefined })
  }
  if (anthropic?.api_key || anthropic?.base_url) {
    const base_url = anthropic.base_url || anthropicBaseUrl
    list.set('anthropic', { name: 'anthropic', kind: 'anthropic', base_url, api_key: anthropic.api_key || undefined })
  }
  return [...list.values()]
}

/** Where models go whose name has no known provider. */
export function defaultProvider(settings: ModelSettings, providers: readonly Provider[]): Provider | undefined {
  const order = ['openai', settings.providers?.[0]?.name, 'anthropic']
  return order
    .map((name) => providers.find((provider) => provider.name === name))
    .find((provider) => provider !== undefined)
}

const variables: Record<string, string> = { openai: 'OPENAI_API_KEY', anthropic: 'ANTHROPIC_API_KEY' }

function notConfigured(full: string, provider: string | undefined): ModelError {
  const message =
    provider === undefined
      ? `The model "${full}" names no provider, and none is configured. Set OPENAI_API_KEY or OPENAI_BASE_URL, or use builtin/echo.`
      : `The provider "${provider}" of the model "${full}" is not configured${variables[provider] ? `; set ${variables[provider]}` : ''}.`
  return fail('provider_not_configured', message)
}

function fail(code: 'provider_not_configured' | 'model_not_found', message: string): ModelError {
  return new ModelError(code, message, { retryable: false })
}
