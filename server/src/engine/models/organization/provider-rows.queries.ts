import type { OwnPrices } from '#contract/models/model-providers.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import type { Sql } from '../../../platform/postgres/database.ts'

/** A provider of an organization, as model calls need it. */
export interface ProviderRow {
  id: string
  name: string
  base_url: string
  protocol: ModelProtocol
  api_key: Buffer | null
  /** Numbers of the projects that may use it; null for all. */
  projects: number[] | null
  /** Prices by the provider's names of its models, as they were given. */
  prices: OwnPrices
  /** Advances with every change. */
  updated_at: string
}

/**
 * The providers of an organization and their version, read at one moment; undefined if the organization was deleted.
 */
export async function readProviders(
  sql: Sql,
  org_id: string,
): Promise<{ version: number; providers: ProviderRow[] } | undefined> {
  const rows = await sql<{ version: number } & { [K in keyof ProviderRow]: ProviderRow[K] | null }>`
    select o.model_providers_version as version, m.id, m.name, m.base_url, m.protocol, m.api_key, to_json(m.projects) as projects, m.prices, m.updated_at
    from organization o left join model_provider m on m.org_id = o.id where o.id = ${org_id} order by m.name`
  const [first] = rows
  if (!first) return undefined
  return { version: first.version, providers: rows.filter(({ id }) => id !== null) as ProviderRow[] }
}
