import { projectId } from '#contract/core/project-id.ts'
import { invalid } from '#contract/core/problems.ts'
import { bounds } from '#contract/core/limits.ts'
import { type OwnPrices, reservedProviderNames } from '#contract/models/model-providers.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import { ownProvider, protocolsOf } from '../../engine/models/models.ts'
import type { Provider } from '../../engine/models/providers/provider.ts'
import { type Egress, EgressRefused } from '../../platform/egress/safe-fetch.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { projectNumber } from '../projects/projects.queries.ts'
import { findProjects, type ModelProviderRow } from './model-providers.queries.ts'

/** A shorter key has no preview. */
const previewedMin = 16

/** The members of a provider in a request. */
export interface AskedProvider {
  name: string
  base_url?: string | undefined
  protocol?: ModelProtocol | undefined
  hasKey: boolean
  /** The current URL, which was checked when it was set. */
  before?: string
}

/**
 * The provider of a request, without its key. Throws `validation_error` if the name is reserved, the URL is missing
 * or forbidden, or the provider does not support the protocol.
 */
export function checkedProvider(egress: Egress, { name, base_url, protocol, hasKey, before }: AskedProvider): Provider {
  if (reservedProviderNames.includes(name))
    throw invalid({
      field: 'name',
      message: `"${name}" is reserved for the built-in provider; choose another name`,
      code: 'invalid_choice',
    })
  const protocols = protocolsOf(name)
  if (protocol !== undefined && !protocols.includes(protocol))
    throw invalid({
      field: 'protocol',
      message: `must be ${protocols.join(' or ')} for a provider named ${name}`,
      code: 'invalid_choice',
    })
  const provider = ownProvider({ name, base_url: base_url?.replace(/(?<!\/)\/+$/, ''), protocol })
  if (!provider)
    throw invalid({
      field: 'base_url',
      message: `is required, because "${name}" has no known address`,
      code: 'required',
    })
  if (base_url === undefined && !hasKey)
    throw invalid({ field: 'api_key', message: `is required for ${provider.base_url}`, code: 'required' })
  if (provider.base_url !== before) checkUrl(egress, provider.base_url)
  return provider
}

/**
 * The project numbers of a request; null for all. Throws `validation_error` for a project that the organization does
 * not have.
 */
export async function projectsOf(
  sql: Sql,
  org_id: string,
  projects: readonly string[] | null | undefined,
): Promise<number[] | null> {
  if (projects === null || projects === undefined) return null
  const numbers = projects.map((id) => projectNumber(id))
  const found = await findProjects(
    sql,
    org_id,
    numbers.filter((number) => number !== undefined),
  )
  const wrong = numbers.findIndex((number) => number === undefined || !found.has(number))
  if (wrong >= 0)
    throw invalid({
      field: `projects[${wrong}]`,
      message: `the organization has no project ${projects[wrong]}`,
      code: 'invalid_choice',
    })
  return [...found].toSorted((a, b) => a - b)
}

/** Validates the model names of prices. Throws `validation_error`. */
export function checkedPrices(prices: OwnPrices): OwnPrices {
  const wrong = Object.keys(prices).find((model) => !/^\S/.test(model) || model.length > bounds.config_model)
  if (wrong !== undefined)
    throw invalid({
      field: 'prices',
      message: `must have model names of 1 to ${bounds.config_model} characters as keys, without the name of the provider`,
      code: 'invalid_format',
      provided: wrong,
    })
  return prices
}

/** The last characters of a key, to distinguish keys; null for a short one. */
export function previewOf(api_key: string): string | null {
  return api_key.length < previewedMin ? null : `…${api_key.slice(-4)}`
}

/** Whether a changed URL would send a stored key to another host or without TLS. */
export function goesElsewhere(before: string, after: string): boolean {
  return new URL(before).origin !== new URL(after).origin
}

/** A provider in a response, without its key. */
export function providerView(row: ModelProviderRow) {
  const { id, name, base_url, protocol, api_key, key_preview, projects, prices } = row
  const { created_by, created_at, updated_at } = row
  return {
    id,
    name,
    kind: ownProvider({ name, base_url, protocol })!.kind,
    protocol,
    base_url,
    has_key: api_key !== null,
    key_preview,
    projects: projects && projects.map(projectId),
    prices,
    created_by,
    created_at,
    updated_at,
  }
}

/** Checks a URL like calls do, except for the addresses that its host resolves to (decision D104). */
function checkUrl(egress: Egress, url: string): void {
  const { search, hash } = new URL(url)
  if (search !== '' || hash !== '')
    throw invalid({ field: 'base_url', message: 'must not contain a query or a fragment', code: 'invalid_format' })
  try {
    egress.check(url, 'model')
  } catch (error) {
    if (!(error instanceof EgressRefused)) throw error
    throw invalid({ field: 'base_url', message: error.message, code: 'invalid_format' })
  }
}
