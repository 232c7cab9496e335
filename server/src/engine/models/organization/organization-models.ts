import type { Logger } from 'pino'
import { modelFacts } from '#contract/models/model-facts.ts'
import { type PriceTable, readPriceTable } from '#contract/models/price-table.ts'
import type { Secrets } from '../../../platform/crypto/secrets.ts'
import { type Egress, EgressRefused } from '../../../platform/egress/safe-fetch.ts'
import { keepOut } from '../../../platform/log.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { type Model, ModelError, type ModelSource } from '../model.ts'
import { type JudgeOrigin, makeModelConnections } from '../model-connections.ts'
import { callLimits } from '../model-watch.ts'
import { ownProvider } from '../models.ts'
import { makeProviderModel } from '../provider-model.ts'
import type { Provider } from '../providers/provider.ts'
import { type ProviderRow, readProviders } from './provider-rows.queries.ts'
import { secretLabels } from '../../../platform/crypto/secret-labels.ts'

/**
 * Whose models are requested. `providers_version` is the organization's version as read with a task: 0 before its first
 * provider.
 */
export interface ModelScope {
  org_id: string | null
  project_id: number
  providers_version: number
}

/**
 * The models of projects whose organizations have added providers. They are cached until the version of the
 * organization's providers changes. Every read and write of a task has the version, so a changed key is used by the
 * next call in every process, and organizations without providers cost nothing.
 */
export interface OrganizationModels {
  /** The models of a project; undefined if they must be read first. */
  known(scope: ModelScope): ModelSource | undefined
  /** The models of a project, read if necessary, with their version, which may be newer than requested. */
  load(sql: Sql, scope: ModelScope): Promise<{ models: ModelSource; version: number }>
  /** Decrypts a provider's row; `isUnreadable` if its key was encrypted with another secret key. */
  open(row: ProviderRow): OpenedProvider
  /** The model of a provider's row, for a call without a task. */
  model(row: ProviderRow): Model
  /** The addresses at which a provider of an organization may be reached: see `Egress`. */
  judge: JudgeOrigin
}

/** A provider; `isUnreadable` if its key cannot be decrypted. */
export type OpenedProvider = { provider: Provider; isUnreadable?: true }

/** Maximum number of organizations in the cache; the oldest entry is removed first. */
const organizationsMax = 1000

interface Entry {
  version: number
  rows: readonly ProviderRow[]
  /** By row id. The model of an unchanged row is reused with its connections and libraries. */
  models: Map<string, { revision: string; model: Model }>
  /** By project. */
  sources: Map<number, ModelSource>
}

/** `base` has the models of the service. */
export function makeOrganizationModels({
  base,
  secrets,
  egress,
  log,
}: {
  base: ModelSource
  secrets: Secrets
  egress: Egress
  log: Logger
}): OrganizationModels {
  const judge: JudgeOrigin = async (origin) => {
    try {
      return await egress.addresses(origin, 'model', AbortSignal.timeout(judgeTimeout_ms))
    } catch (error) {
      if (error instanceof EgressRefused)
        throw new ModelError(
          'provider_refused_request',
          `The address of the provider is not allowed: ${error.message}.`,
          {
            retryable: false,
            cause: error,
          },
        )
      throw error
    }
  }
  const connections = makeModelConnections(judge)
  const factsOf = base.facts ?? modelFacts
  const entries = new Map<string, Entry>()

  const open = (row: ProviderRow): OpenedProvider => {
    const { id, name, base_url, protocol, updated_at } = row
    const prices = pricesOfModels(row)
    const provider = ownProvider({ name, base_url, protocol })!
    const owned = { ...provider, owner: { id, revision: updated_at, prices } }
    if (row.api_key === null) return { provider: owned }
    try {
      const api_key = secrets.decrypt(secretLabels.model_provider, row.api_key, id)
      keepOut(log, [api_key])
      return { provider: { ...owned, api_key } }
    } catch (error) {
      log.warn(
        { err: error, model_provider_id: id },
        'the key of a model provider could not be decrypted; its calls fail',
      )
      return { provider: owned, isUnreadable: true }
    }
  }
  const model = (row: ProviderRow): Model => {
    const { provider, isUnreadable } = open(row)
    return isUnreadable
      ? unreadable(provider)
      : makeProviderModel(provider, { connections, limits: callLimits, factsOf })
  }
  const sourceOf = (entry: Entry, project_id: number): ModelSource => {
    const found = entry.sources.get(project_id)
    if (found) return found
    const mayUse = ({ projects }: ProviderRow): boolean => projects === null || projects.includes(project_id)
    const models = new Map(entry.rows.filter(mayUse).map(({ id, name }) => [name, entry.models.get(id)!.model]))
    const disabled = entry.rows.filter((row) => !mayUse(row)).map(({ name }) => name)
    const source = base.with?.({ models, disabled }) ?? base
    entry.sources.set(project_id, source)
    return source
  }
  const keep = (org_id: string, version: number, rows: readonly ProviderRow[]): Entry => {
    const before = entries.get(org_id)
    if (before && before.version >= version) return before
    const models = new Map(
      rows.map((row) => {
        const known = before?.models.get(row.id)
        const isSame = known?.revision === row.updated_at
        return [row.id, isSame ? known : { revision: row.updated_at, model: model(row) }]
      }),
    )
    const entry: Entry = { version, rows, models, sources: new Map() }
    entries.delete(org_id)
    entries.set(org_id, entry)
    const [oldest] = entries.keys()
    if (entries.size > organizationsMax && oldest !== undefined) entries.delete(oldest)
    return entry
  }
  const known: OrganizationModels['known'] = ({ org_id, project_id, providers_version }) => {
    if (org_id === null || providers_version === 0) return base
    const entry = entries.get(org_id)
    return entry && entry.version === providers_version ? sourceOf(entry, project_id) : undefined
  }
  return {
    known,
    async load(sql, scope) {
      const { org_id, project_id, providers_version } = scope
      const found = known(scope)
      if (found) return { models: found, version: providers_version }
      const read = await readProviders(sql, org_id!)
      if (!read) return { models: base, version: providers_version }
      const entry = keep(org_id!, read.version, read.providers)
      return { models: sourceOf(entry, project_id), version: entry.version }
    },
    open,
    model,
    judge,
  }
}

const judgeTimeout_ms = 10_000

/** The prices of a provider's row by `provider/model`. They were judged when they were stored. */
function pricesOfModels({ name, prices }: Pick<ProviderRow, 'name' | 'prices'>): PriceTable {
  const named = Object.entries(prices).map(([model, price]) => [`${name}/${model}`, price] as const)
  return readPriceTable(Object.fromEntries(named)) ?? new Map()
}

function unreadable({ name, owner }: Provider): Model {
  return {
    provider: name,
    own: { key: `${owner!.id}@${owner!.revision}`, is_elsewhere: false, prices: owner!.prices },
    call: async () => {
      throw new ModelError(
        'secret_unreadable',
        `The key of the model provider ${name} was encrypted with another CADRE_SECRET_KEY and cannot be decrypted. Set the key again.`,
        { retryable: false },
      )
    },
  }
}
