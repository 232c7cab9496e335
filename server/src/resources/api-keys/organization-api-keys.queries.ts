import type { Sql } from '../../platform/postgres/database.ts'
import { columns, withoutNulls, type ApiKeyRow } from './api-keys.queries.ts'

/** A key of any member, with its owner. */
export interface OrganizationApiKeyRow extends ApiKeyRow {
  user: { id: string; name: string; email: string }
}

const withUser = (sql: Sql) => sql.fragment`
  ${columns(sql)}, jsonb_build_object('id', u.id, 'name', u.name, 'email', u.email) as "user"`

/** A page of an organization's keys, newest first, and their total number; expired ones only if requested. */
export async function listOrganizationApiKeys(
  sql: Sql,
  org_id: string,
  filter: { active_only: boolean; user_id?: string | undefined; limit: number; offset: number },
): Promise<{ api_keys: ApiKeyRow[]; total: number }> {
  const where = sql.fragment`
    k.org_id = ${org_id} and k.revoked_at is null
    and (${filter.user_id ?? null}::text is null or k.user_id = ${filter.user_id ?? null})
    and (not ${filter.active_only} or k.expires_at is null or k.expires_at > now())`
  const [count] = await sql.run<{ total: number }>(sql.fragment`select count(*) as total from api_key k where ${where}`)
  const rows = await sql.run<OrganizationApiKeyRow>(sql.fragment`
    select ${withUser(sql)} from api_key k join app_user u on u.id = k.user_id where ${where}
    order by k.id desc limit ${filter.limit} offset ${filter.offset}`)
  return { api_keys: rows.map(withoutNulls), total: count?.total ?? 0 }
}

/** A key of an organization; undefined if it does not exist or is revoked. */
export async function findOrganizationApiKey(
  sql: Sql,
  org_id: string,
  id: string,
): Promise<OrganizationApiKeyRow | undefined> {
  const [row] = await sql.run<OrganizationApiKeyRow>(sql.fragment`
    select ${withUser(sql)} from api_key k join app_user u on u.id = k.user_id
    where k.id = ${id} and k.org_id = ${org_id} and k.revoked_at is null`)
  return row
}
