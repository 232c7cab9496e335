import { isObject } from '#contract/core/merge-patch.ts'
import {
  providerCheck_seconds,
  providerModelsMax,
  type modelProviderKinds,
  type modelProviderStates,
} from '#contract/models/model-providers.ts'
import { openUpstream, UpstreamError } from '../../../platform/egress/connect.ts'
import { builtinModels, defaultProvider, listProviders, type ModelSettings } from '../models.ts'
import { ModelError } from '../model.ts'
import type { JudgeOrigin } from '../model-connections.ts'
import type { OpenedProvider } from '../organization/organization-models.ts'
import type { Provider } from './provider.ts'
import { readUpTo } from '../../../platform/read-up-to.ts'

/** A provider as callers see it: without its key and its address. */
export interface ProviderState {
  name: string
  kind: (typeof modelProviderKinds)[number]
  is_default: boolean
  has_key: boolean
  status: (typeof modelProviderStates)[number]
  error: string | null
  models: string[]
  checked_at: string
}

/** Timeout for the complete response. */
const answerTimeout_ms = 5_000
const answerMax_bytes = 1024 * 1024

/** The states of the service's providers, and of an organization's, in order. */
export interface ProviderStates {
  service: ProviderState[]
  organization: ProviderState[]
}

/** Maximum number of cached states of organizations' providers; the oldest is removed first. */
const cachedMax = 1000

/**
 * Asks the configured providers, and the given ones of an organization, for their models. Concurrent callers share one
 * request, and a result is cached for half a minute, so callers cannot make the service ask a provider more often.
 * `judge` decides at which addresses an organization's provider may be reached.
 */
export function makeProviderChecks(
  settings: ModelSettings,
  judge: JudgeOrigin,
): (own: readonly OpenedProvider[]) => Promise<ProviderStates> {
  const configured = listProviders(settings)
  const byDefault = defaultProvider(settings, configured)?.name
  const known = new Map<string, { until: number; state: Promise<ProviderState> }>()
  const ask = (opened: OpenedProvider): Promise<ProviderState> => {
    const { provider } = opened
    const { name, owner } = provider
    const key = owner ? `${owner.id}@${owner.revision}` : name
    const found = known.get(key)
    if (found && found.until > performance.now()) return found.state
    const state = checkProvider(opened, owner ? judge : undefined).then((answer) => ({
      name,
      kind: provider.kind,
      is_default: !owner && name === byDefault,
      has_key: provider.api_key !== undefined || opened.isUnreadable === true,
      checked_at: new Date().toISOString(),
      ...answer,
    }))
    known.delete(key)
    known.set(key, { until: performance.now() + providerCheck_seconds * 1000, state })
    const [oldest] = known.keys()
    if (known.size > configured.length + cachedMax && oldest !== undefined) known.delete(oldest)
    return state
  }
  return async (own) => {
    const builtin: ProviderState = {
      name: 'builtin',
      kind: 'builtin',
      is_default: false,
      has_key: false,
      status: 'reachable',
      error: null,
      models: builtinModels,
      checked_at: new Date().toISOString(),
    }
    const [others, organization] = await Promise.all([
      Promise.all(configured.map((provider) => ask({ provider }))),
      Promise.all(own.map(ask)),
    ])
    return { service: [builtin, ...others], organization }
  }
}

type Answer = Pick<ProviderState, 'status' | 'error' | 'models'>

/**
 * Asks a provider for its models. Never throws: an error becomes the result. `judge` decides at which addresses it may
 * be reached.
 */
export async function checkProvider({ provider, isUnreadable }: OpenedProvider, judge?: JudgeOrigin): Promise<Answer> {
  const unreachable = (error: string): Answer => ({ status: 'unreachable', error, models: [] })
  if (isUnreadable) {
    const error = 'Its key was encrypted with another CADRE_SECRET_KEY. Set the key again.'
    return { status: 'unreadable', error, models: [] }
  }
  try {
    const { status, text } = await read(provider, judge)
    if (status === 401 || status === 403)
      return {
        status: 'refused',
        error: `It answered ${status}: the key is missing, wrong or lacks permission.`,
        models: [],
      }
    if (status >= 500) return unreachable(`It answered ${status}.`)
    return { status: 'reachable', error: null, models: status === 200 ? modelsOf(provider, text) : [] }
  } catch (error) {
    if (error instanceof ModelError) return unreachable(error.message)
    if (error instanceof UpstreamError) return unreachable(messages[error.code])
    return unreachable('It did not respond completely in time.')
  }
}

const messages = {
  dns_failed: 'The host name does not resolve.',
  connect_failed: 'The connection was refused.',
  connect_timed_out: 'The connection timed out.',
  tls_failed: 'The TLS certificate is not valid.',
} as const satisfies Record<UpstreamError['code'], string>

async function read(
  { kind, base_url, api_key }: Provider,
  judge: JudgeOrigin | undefined,
): Promise<{ status: number; text: string }> {
  const { fetch } = await import('undici')
  const url = new URL(`${base_url.replace(/(?<!\/)\/+$/, '')}/models`)
  if (kind === 'anthropic') url.searchParams.set('limit', String(providerModelsMax))
  const addresses = await judge?.(url.origin)
  const connection = await openUpstream(url.origin, {
    connectTimeout_ms: answerTimeout_ms,
    ...(addresses && { addresses }),
  })
  try {
    const response = await fetch(url, {
      dispatcher: connection.client,
      redirect: 'manual',
      signal: AbortSignal.timeout(answerTimeout_ms),
      headers: {
        accept: 'application/json',
        'accept-encoding': 'identity',
        ...(kind === 'anthropic'
          ? { 'anthropic-version': '2023-06-01', ...(api_key === undefined ? {} : { 'x-api-key': api_key }) }
          : api_key === undefined
            ? {}
            : { authorization: `Bearer ${api_key}` }),
      },
    })
    const text = response.body ? (await readUpTo(response.body, answerMax_bytes)).read.toString('utf8') : ''
    return { status: response.status, text }
  } catch (error) {
    // `fetch` wraps the error of the connection as its cause.
    throw error instanceof Error && error.cause instanceof UpstreamError ? error.cause : error
  } finally {
    await connection.destroy()
  }
}

/** The ids in `{ data: [{ id }] }`, the form of OpenAI, Anthropic and compatible servers; empty for any other body. */
function modelsOf({ name }: Provider, text: string): string[] {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return []
  }
  const data = isObject(body) && Array.isArray(body.data) ? body.data : []
  return data
    .flatMap((one: unknown) => (isObject(one) && typeof one.id === 'string' ? [`${name}/${one.id}`] : []))
    .toSorted()
    .slice(0, providerModelsMax)
}
