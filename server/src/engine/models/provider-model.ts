import { knownAddresses } from '#contract/models/known-addresses.ts'
import { nativeProviders, type NativeProviderName } from '#contract/models/native-providers.ts'
import { isImageType } from '#contract/resources/files.ts'
import type { AdaptedRequest, OpenModel, ProviderNetwork } from './providers/adapter.ts'
import { cleanAnswer } from './clean-answer.ts'
import { mapCallSettings } from './call-settings.ts'
import {
  type Model,
  ModelError,
  type ModelRequest,
  type ModelTool,
  type NetworkUse,
  type OwnProvider,
} from './model.ts'
import { toModelError } from './model-errors.ts'
import type { makeModelConnections, ModelCallConnection } from './model-connections.ts'
import { type CallLimits, watchCall } from './model-watch.ts'
import { toCallOptions } from './prompt.ts'
import { adapterOf, type FactsOf } from './providers/providers.ts'
import { readAnswer } from './read-answer.ts'
import { makeWireNames } from './wire-names.ts'
import type { Provider } from './providers/provider.ts'

/**
 * A provider's models. A call is exactly one request: the libraries' loops, retries and tool execution are not used,
 * because the engine has the loop and its journal. Cadre reads the stream of the provider's library without the
 * library's `streamText` above it. That costs four times the CPU time per piece of text, and reports a failure as one
 * more part of a successful stream.
 */
export function makeProviderModel(
  provider: Provider,
  {
    connections,
    limits,
    factsOf,
  }: { connections: ReturnType<typeof makeModelConnections>; limits: CallLimits; factsOf: FactsOf },
): Model {
  const adapter = adapterOf(provider)
  const open = makeOpen(provider)
  return {
    provider: provider.name,
    ...(provider.owner ? { own: ownFacts(provider) } : {}),
    takes: (media_type) => takesFile(provider, media_type),
    preparesEarly: true,
    call: async (request) => {
      request.signal.throwIfAborted()
      const connection = connections.begin(request.ready)
      const watch = watchCall(limits, request.signal, () => connection.use().bytes_in)
      try {
        const facts = factsOf(`${provider.name}/${request.model}`)
        const { callSettings, warnings } = mapCallSettings(request, provider, facts)
        for (const warning of warnings) request.on_warning?.(warning)
        const adapted: AdaptedRequest = { request, provider, facts, callSettings }
        const isByTool = request.output_schema !== undefined && adapter.schemaWay(adapted) === 'tool'
        const answer_tool = isByTool ? answerTool(request) : undefined
        const names = makeWireNames(request, answer_tool?.name)
        const plain = toCallOptions(request, { provider, names, signal: watch.signal, answer_tool })
        const options = adapter.adapt(adapted, {
          ...plain,
          ...(callSettings.temperature === undefined ? {} : { temperature: callSettings.temperature }),
          ...(callSettings.max_tokens === undefined ? {} : { maxOutputTokens: callSettings.max_tokens }),
        })
        const model = await open(request.model, watch.signal, connection)
        const reading = { request, names, provider, answer_tool: answer_tool?.name, onPart: watch.started }
        const answer = await readAnswer((take) => model.stream(options, take), reading)
        return cleanAnswer({ ...answer, network: connection.use() })
      } catch (error) {
        request.signal.throwIfAborted()
        throw asFailedCall(watch.failure() ?? toModelError(error, provider.name), provider, connection.use())
      } finally {
        watch.end()
        await connection.end()
      }
    },
  }
}

/** What the engine knows about an organization's provider. */
function ownFacts({ owner, name, base_url }: Provider): OwnProvider {
  const home = Object.hasOwn(nativeProviders, name)
    ? nativeProviders[name as NativeProviderName].base_url
    : knownAddresses[name]
  const is_elsewhere = home !== undefined && URL.parse(base_url)?.hostname !== URL.parse(home)?.hostname
  return { key: `${owner!.id}@${owner!.revision}`, is_elsewhere, prices: owner!.prices }
}

/** Maximum number of cached models of a provider; the oldest is removed first. */
const keptModelsMax = 256

/**
 * Opens models of a provider, once each, because creating a library's schemas costs more than reading a short answer. A
 * call's request is identified by the signal that the library passes with it, and uses the call's connection.
 */
function makeOpen(
  provider: Provider,
): (model: string, signal: AbortSignal, connection: ModelCallConnection) => Promise<OpenModel> {
  const calls = new WeakMap<AbortSignal, ModelCallConnection>()
  const kept = new Map<string, Promise<OpenModel>>()
  const connectionOf = (signal: AbortSignal | null | undefined): ModelCallConnection => {
    const connection = signal ? calls.get(signal) : undefined
    if (!connection) throw new Error('a provider library made a request without the signal of its call')
    return connection
  }
  const network: ProviderNetwork = {
    fetch: (async (input: string | URL, init?: RequestInit) =>
      connectionOf(init?.signal).fetch(input, init)) as typeof globalThis.fetch,
    post: async (url, request) => connectionOf(request.signal).post(url, request),
  }
  return (model, signal, connection) => {
    calls.set(signal, connection)
    const known = kept.get(model)
    if (known) return known
    if (kept.size >= keptModelsMax) kept.delete(kept.keys().next().value!)
    const opened = adapterOf(provider).open(provider, model, network)
    kept.set(model, opened)
    // A failed load is repeated by the next call.
    opened.catch(() => kept.delete(model))
    return opened
  }
}

/**
 * Every protocol supports pictures. PDF is only for the native providers, because other servers have no common form for
 * it.
 */
function takesFile({ kind }: Provider, media_type: string): boolean {
  if (isImageType(media_type)) return true
  return media_type === 'application/pdf' && (kind === 'openai' || kind === 'anthropic')
}

/** The tool by which a model returns its answer if the provider does not enforce its schema. */
function answerTool({ tools, output_schema }: ModelRequest): ModelTool {
  const taken = new Set(tools.map(({ name }) => name))
  let name = 'final_answer'
  for (let number = 2; taken.has(name); number++) name = `final_answer_${number}`
  return { name, description: 'Gives the final answer.', parameters: output_schema! }
}

/** The error for the engine: with the network use of the call, and without the key, which some providers repeat. */
function asFailedCall(error: ModelError, { api_key }: Provider, network: NetworkUse): ModelError {
  const message = api_key ? error.message.replaceAll(api_key, '[redacted]') : error.message
  const { code, retryable, retry_after, cause } = error
  return new ModelError(code, message, { retryable, retry_after, cause, network })
}
