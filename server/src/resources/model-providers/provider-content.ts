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

/** A key shorter than this is not shown in part. */
const previewedMin = 16

/** What a request says of a provider. */
export interface AskedProvider {
  name: string
  base_url?: string | undefined
  protocol?: ModelProtocol | undefined
  hasKey: boolean
  /** The address that it has already, and that was judged when it was given. */
  before?: string
}

/**
 * The provider that a request describes, without its key. Throws `validation_error` where its name is reserved, its address is unknown
 * or forbidden, or it cannot be spoken to in the protocol.
 */
export function checkedProvider(egress: Egress, { name, base_url, protocol, hasKey, before }: AskedProvider): Provider {
  if (reservedProviderNames.includes(name))
    throw invalid({ field: 'name', message: `"${name}" is built in; choose another name`, code: 'invalid_choice' })
  const protocols = protocolsOf(name)
  if (protocol !== undefined && !protocols.includes(protocol))
    throw invalid({
      field: 'protocol',
      message: `a provider named ${name} is spoken to in ${protocols.join(' or ')}`,
      code: 'invalid_choice',
    })
  const provider = ownProvider({ name, base_url: base_url?.replace(/(?<!\/)\/+$/, ''), protocol })
  if (!provider)
    throw invalid({ field: 'base_url', message: `is required: no address of "${name}" is known`, code: 'required' })
  if (base_url === undefined && !hasKey)
    throw invalid({ field: 'api_key', message: `is required at ${provider.base_url}`, code: 'required' })
  if (provider.base_url !== before) checkUrl(egress, provider.base_url)
  return provider
}

/** The numbers of projects that a request names; null: all. Throws `validation_error` for one that the organization does not have. */
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

/** Prices by names that a model of a provider can have. Throws `validation_error` for another name. */
export function checkedPrices(prices: OwnPrices): OwnPrices {
  const wrong = Object.keys(prices).find((model) => !/^\S/.test(model) || model.length > bounds.config_model)
  if (wrong !== undefined)
    throw invalid({
      field: 'prices',
      message: `must be by names of models, of 1 to ${bounds.config_model} characters, without the name of the provider`,
      code: 'invalid_format',
      provided: wrong,
    })
  return prices
}

/** The end of a key, to tell keys apart; null of a short one. */
export function previewOf(api_key: string): string | null {
  return api_key.length < previewedMin ? null : `…${api_key.slice(-4)}`
}

/** Whether a key that is known would go to another host, or over an open line. */
export function goesElsewhere(before: string, after: string): boolean {
  return new URL(before).origin !== new URL(after).origin
}

/** A provider as it is answered: without its key. */
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

/** Judges an address as calls will, but for what its name resolves to (decision D104). */
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
