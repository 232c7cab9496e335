import { knownAddresses } from '#contract/models/known-addresses.ts'
import { modelFacts } from '#contract/models/model-facts.ts'
import {
  nativeProviderNames,
  nativeProviders,
  type NativeProvider,
  type NativeProviderName,
  type ModelProtocol,
} from '#contract/models/native-providers.ts'
import { echoModel } from './builtin/builtin-echo.ts'
import { scriptModel } from './builtin/builtin-script.ts'
import { type Model, ModelError, type ModelSource, type OwnModels } from './model.ts'
import { type CallLimits, callLimits } from './model-watch.ts'
import { makeModelConnections } from './model-connections.ts'
import { makeProviderModel } from './provider-model.ts'
import { nearest } from '../../platform/nearest.ts'
import { type FactsOf, ollamaBaseUrl } from './providers/providers.ts'
import type { Provider } from './providers/provider.ts'

export interface ModelSettings extends Partial<Record<NativeProviderName, ProviderSettings>> {
  /** Further servers with a protocol of OpenAI, by name. One named `ollama` replaces the default one. */
  providers?: readonly { name: string; base_url: string; api_key?: string; protocol?: ModelProtocol }[]
  /** The model of agents that name none. */
  default_model: string
  /** The operator's facts about models, by `provider/model`. */
  limits?: ReadonlyMap<string, { context?: number; output?: number; reasons?: boolean }>
}

/**
 * A native provider is configured by a key, a base URL, or both. Only another base URL than its own works without a
 * key.
 */
interface ProviderSettings {
  api_key?: string | undefined
  base_url?: string | undefined
  protocol?: ModelProtocol | undefined
}

/** The models of the service. */
export interface Models extends ModelSource {
  default_model: string
  /**
   * The model for a name, and its name at the provider. In `provider/model`, the model's part may contain slashes. A
   * name without a slash is of the default provider: see `defaultProvider`. Only a call shows whether a provider has a
   * model: nothing is connected or loaded here.
   * @throws ModelError `provider_not_configured` or `model_not_found`
   */
  resolve(name: string): { model: Model; name: string }
  /** Facts about `provider/model`. */
  facts: FactsOf
  with(own: OwnModels): ModelSource
}

const builtins = new Map<string, Model>([
  ['echo', echoModel],
  ['script', scriptModel],
])
/** Names of the models that need no provider. */
export const builtinModels = [...builtins.keys()].map((name) => `builtin/${name}`)
const builtinNames = builtinModels.join(' and ')

/** Makes the models of the settings. `builtin/…` and `ollama/…` always exist. */
export function makeModels(settings: ModelSettings, { limits = callLimits }: { limits?: CallLimits } = {}): Models {
  const connections = makeModelConnections()
  const facts = makeFacts(settings)
  const providers = listProviders(settings)
  const models = new Map(
    providers.map((provider) => [provider.name, makeProviderModel(provider, { connections, limits, factsOf: facts })]),
  )
  const byDefault = defaultProvider(settings, providers)
  return {
    default_model: settings.default_model,
    resolve: makeResolve({ models, byDefault, disabled: [] }),
    facts,
    with: ({ models: own, disabled }) => {
      const all = new Map([...models, ...own])
      const [first] = nativeProviderNames
      const [anyOwn] = [...own.keys()].toSorted()
      const named = own.has(first!) ? first : (byDefault?.name ?? anyOwn)
      const fallback = named === byDefault?.name ? byDefault : named === undefined ? undefined : { name: named }
      return { resolve: makeResolve({ models: all, byDefault: fallback, disabled }), facts }
    },
  }
}

/** The providers for resolving names. */
interface Resolving {
  models: ReadonlyMap<string, Model>
  /** The provider of names without one. */
  byDefault: Fallback | undefined
  /** Names of the organization's providers for other projects only. */
  disabled: readonly string[]
}

type Fallback = Pick<Provider, 'name'> & Partial<Pick<Provider, 'kind'>>

function makeResolve(resolving: Resolving): Models['resolve'] {
  const { models, byDefault } = resolving
  return (full) => {
    const [provider, name] = split(full)
    if (provider === 'builtin') {
      const model = builtins.get(name)
      if (!model) throw fail('model_not_found', `There is no built-in model ${full}. Use ${builtinNames}.`)
      return { model, name }
    }
    if (full === '' || name === '') throw fail('model_not_found', `"${full}" names no model. Write provider/model.`)
    const model = models.get(provider ?? byDefault?.name ?? '')
    if (!model) throw notConfigured(full, provider, resolving)
    return { model, name }
  }
}

/**
 * The facts of the built-in list, overridden by the operator's. A model that the operator declares to reason does so by
 * default.
 */
function makeFacts({ limits }: ModelSettings): FactsOf {
  return (provider_model) => {
    const facts = modelFacts(provider_model)
    const { reasons, ...own } = limits?.get(provider_model) ?? {}
    if (reasons === undefined || reasons === facts.reasons) return { ...facts, ...own }
    return { ...facts, ...own, reasons, reasons_by_default: reasons }
  }
}

/** Splits `provider/model`. A name without a slash has no provider. The model's part may contain slashes. */
function split(full: string): [string | undefined, string] {
  const slash = full.indexOf('/')
  return slash < 0 ? [undefined, full] : [full.slice(0, slash), full.slice(slash + 1)]
}

/** The settings of a provider that an organization adds. */
export interface OwnSettings {
  name: string
  base_url?: string | undefined
  api_key?: string | undefined
  protocol?: ModelProtocol | undefined
}

/**
 * A provider with an organization's settings, like one of the service; undefined if its address is neither given nor
 * known. Its protocol may be one that it does not support: see `protocolsOf`.
 */
export function ownProvider({ name, base_url, api_key, protocol }: OwnSettings): Provider | undefined {
  if (isNative(name)) return nativeProvider(name, { base_url, api_key, protocol })
  const address = base_url ?? (Object.hasOwn(knownAddresses, name) ? knownAddresses[name] : undefined)
  return address === undefined ? undefined : compatible(name, address, api_key, protocol)
}

/** The protocols of a provider with this name. */
export function protocolsOf(name: string): readonly ModelProtocol[] {
  return isNative(name) ? nativeProviders[name].protocols : ['responses', 'chat']
}

function isNative(name: string): name is NativeProviderName {
  return Object.hasOwn(nativeProviders, name)
}

function compatible(
  name: string,
  base_url: string,
  api_key: string | undefined,
  protocol: ModelProtocol = 'chat',
): Provider {
  return { name, kind: 'openai_compatible', base_url, api_key, protocol }
}

/** The providers of the settings, including `ollama`. */
export function listProviders(settings: ModelSettings): Provider[] {
  const list = new Map<string, Provider>()
  list.set('ollama', compatible('ollama', ollamaBaseUrl, undefined))
  for (const { name, base_url, api_key, protocol } of settings.providers ?? [])
    list.set(name, compatible(name, base_url, api_key, protocol))
  for (const name of nativeProviderNames) {
    const { api_key, base_url, protocol } = settings[name] ?? {}
    if (api_key || base_url) list.set(name, nativeProvider(name, { api_key, base_url, protocol }))
  }
  return [...list.values()]
}

function nativeProvider(name: NativeProviderName, { api_key, base_url, protocol }: ProviderSettings): Provider {
  const { base_url: home, kind_follows_address, protocols }: NativeProvider = nativeProviders[name]
  const address = base_url || home
  const isHome = isSameHost(address, home)
  const spoken = protocol ?? (isHome ? protocols[0] : protocols.at(-1)!)
  return {
    name,
    // A native provider's models have rules that its library knows, and so has a gateway with the provider's native
    // protocol. Any other server gets the plain protocol.
    kind: kind_follows_address && !isHome && spoken !== protocols[0] ? 'openai_compatible' : name,
    base_url: address,
    api_key: api_key || undefined,
    protocol: spoken,
  }
}

/** Whether an address belongs to a provider itself, or one of its regions. */
function isSameHost(address: string, home: string): boolean {
  const [host, own] = [URL.parse(address)?.hostname ?? '', URL.parse(home)?.hostname ?? '']
  return host === own || host.endsWith(`.${own}`)
}

/** The provider of names without one: OpenAI if it is configured, else the first of `providers`, else Anthropic. */
export function defaultProvider(settings: ModelSettings, providers: readonly Provider[]): Provider | undefined {
  const [first, ...others] = nativeProviderNames
  const order = [first, settings.providers?.[0]?.name, ...others]
  return order
    .map((name) => providers.find((provider) => provider.name === name))
    .find((provider) => provider !== undefined)
}

function notConfigured(full: string, provider: string | undefined, resolving: Resolving): ModelError {
  const there = ['builtin', ...resolving.models.keys()].toSorted().join(', ')
  if (provider === undefined) {
    const message = `The model "${full}" names no provider, and there is no default provider. Set OPENAI_API_KEY or OPENAI_BASE_URL, or use builtin/echo. Configured: ${there}.`
    return fail('provider_not_configured', message)
  }
  return fail(
    'provider_not_configured',
    `The provider "${provider}" of the model "${full}" is not configured${hintFor(full, provider, resolving)}. Configured: ${there}.`,
  )
}

/** How to fix an unknown provider: enable it, set its key, correct its name, or write the provider that was meant. */
function hintFor(full: string, provider: string, { models, byDefault, disabled }: Resolving): string {
  if (disabled.includes(provider))
    return ' for this project; enable it for the project in the model providers of the organization'
  if (isNative(provider)) return `; set ${provider.toUpperCase()}_API_KEY, or add the provider to the organization`
  const meant = nearest(provider, [...models.keys()])
  if (meant !== undefined) return `; "${meant}" may be meant`
  if (byDefault?.kind !== 'openai_compatible') return ''
  return `; for a model of ${byDefault.name} with that name, write "${byDefault.name}/${full}"`
}

function fail(code: 'provider_not_configured' | 'model_not_found', message: string): ModelError {
  return new ModelError(code, message, { retryable: false })
}
