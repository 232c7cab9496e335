import { notFound } from '#contract/core/problems.ts'
import type { OwnPrices } from '#contract/models/model-providers.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import type { ProviderRow } from '../../engine/models/organization/provider-rows.queries.ts'
import { isId } from '../../platform/ids.ts'
import { writeUniqueName, type UniqueName } from '../../platform/postgres/constraints.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** A provider of an organization, with its encrypted key. */
export interface ModelProviderRow extends ProviderRow {
  org_id: string
  key_preview: string | null
  created_by: string
  created_at: string
}

/** The stored content of a provider. */
export interface ProviderContent {
  name: string
  base_url: string
  protocol: ModelProtocol
  /** The encrypted key; null if there is none. */
  api_key: Buffer | null
  key_preview: string | null
  /** Numbers of projects; null for all. */
  projects: number[] | null
  /** Prices by the provider's model names. */
  prices: OwnPrices
}

const columns = ({ fragment }: Sql): Fragment => fragment`
  m.id, m.org_id, m.name, m.base_url, m.protocol, m.api_key, m.key_preview, m.prices, m.created_by, m.created_at, m.updated_at,
  case when m.projects is not null then
    (select coalesce(json_agg(p.id order by p.id), '[]') from project p where p.org_id = m.org_id and p.id = any(m.projects)) end as projects`

/**
 * A provider of an organization; throws 404 if it does not exist. With `lock` its row is locked until the transaction
 * ends.
 */
export async function requireModelProvider(
  sql: Sql,
  { id, org_id }: { id: string; org_id: string },
  { lock = false } = {},
): Promise<ModelProviderRow> {
  const [row] = isId('mprov', id)
    ? await sql.run<ModelProviderRow>(sql.fragment`
        select ${columns(sql)} from model_provider m where m.id = ${id} and m.org_id = ${org_id}
        ${lock ? sql.fragment`for update of m` : sql.fragment``}`)
    : []
  if (!row) throw notFound('model_provider_not_found', 'model_provider', id.slice(0, 100))
  return row
}

/** The providers of an organization, by name. */
export async function listOwnProviders(sql: Sql, org_id: string): Promise<ModelProviderRow[]> {
  return sql.run<ModelProviderRow>(
    sql.fragment`select ${columns(sql)} from model_provider m where m.org_id = ${org_id} order by m.name`,
  )
}

/**
 * Increments the version of an organization's providers, which every process sees with its next read or write of a
 * task. Locks the organization, so that changes are serialized.
 */
async function noteChange(tx: Sql, org_id: string): Promise<void> {
  await tx`update organization set model_providers_version = model_providers_version + 1 where id = ${org_id}`
}

/** Inserts a provider; undefined if the organization has too many. Throws `resource_conflict` for a taken name. */
export async function insertModelProvider(
  tx: Sql,
  { id, org_id, created_by, ...content }: ProviderContent & Pick<ModelProviderRow, 'id' | 'org_id' | 'created_by'>,
  providersMax: number,
): Promise<ModelProviderRow | undefined> {
  const { name, base_url, protocol, api_key, key_preview, projects, prices } = content
  await noteChange(tx, org_id)
  return writeUniqueName(tx, uniqueName(tx, org_id, name), async (inner) => {
    const [row] = await inner.run<ModelProviderRow>(inner.fragment`
      insert into model_provider as m (id, org_id, name, base_url, protocol, api_key, key_preview, projects, prices, created_by)
      select ${id}, ${org_id}, ${name}, ${base_url}, ${protocol}, ${api_key}::bytea, ${key_preview}, ${projects}::bigint[], ${prices}, ${created_by}
      where (select count(*) from model_provider where org_id = ${org_id}) < ${providersMax}
      returning ${columns(inner)}`)
    return row
  })
}

/** Replaces the content of a locked provider. */
export async function updateModelProvider(
  tx: Sql,
  { id, org_id }: ModelProviderRow,
  { name, base_url, protocol, api_key, key_preview, projects, prices }: ProviderContent,
): Promise<ModelProviderRow> {
  await noteChange(tx, org_id)
  return writeUniqueName(tx, uniqueName(tx, org_id, name), async (inner) => {
    const [row] = await inner.run<ModelProviderRow>(inner.fragment`
      update model_provider m set name = ${name}, base_url = ${base_url}, protocol = ${protocol}, api_key = ${api_key}::bytea,
        key_preview = ${key_preview}, projects = ${projects}::bigint[], prices = ${prices},
        updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${id} returning ${columns(inner)}`)
    return row!
  })
}

/** Deletes a provider; returns false if it did not exist. */
export async function deleteModelProvider(tx: Sql, { id, org_id }: ModelProviderRow): Promise<boolean> {
  await noteChange(tx, org_id)
  const rows = await tx`delete from model_provider where id = ${id} returning id`
  return rows.length > 0
}

/** Those of the given projects that the organization has. */
export async function findProjects(sql: Sql, org_id: string, numbers: readonly number[]): Promise<Set<number>> {
  if (numbers.length === 0) return new Set()
  const rows = await sql<{ id: number }>`
    select id from project where org_id = ${org_id} and id = any(${[...numbers]}::bigint[])`
  return new Set(rows.map(({ id }) => id))
}

function uniqueName(sql: Sql, org_id: string, name: string): UniqueName {
  const findId = async (): Promise<string | undefined> => {
    const [row] = await sql<{ id: string }>`select id from model_provider where org_id = ${org_id} and name = ${name}`
    return row?.id
  }
  return { resource_type: 'model_provider', name, owner: { resource_type: 'organization', id: org_id }, findId }
}
