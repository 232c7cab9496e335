import { randomBytes } from 'node:crypto'
import type { Sql } from '../../platform/postgres/database.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { newId } from '../../platform/ids.ts'

/** A key without its secret (spec 2.3). */
export interface ApiKeyRow {
  id: string
  name: string
  description: string
  key_preview: string
  scopes: string[]
  created_at: string
  updated_at?: string | undefined
  /** When the previous secret stops working; set while it works. */
  previous_expires_at?: string | undefined
  expires_at: string | null
  last_used: string | null
  /** IP address of the latest request. */
  last_ip?: string | undefined
  /** The queues that it may claim from; absent for all. */
  queues?: string[] | undefined
}

/** The owner of keys: a user in one organization (decision D59). */
export interface KeyOwner {
  user_id: string
  org_id: string
}

/** A new secret: `cadre_` and 128 random bits as lowercase hexadecimal (decision D54). */
export function newApiKey(): string {
  return `cadre_${randomBytes(16).toString('hex')}`
}

/** The visible part of a secret. */
export function previewOf(key: string): string {
  return `${key.slice(0, 14)}***`
}

/** Stores a key by its SHA-256. A slow hash is unnecessary for 128 random bits (decision D54). */
export async function insertApiKey(
  sql: Sql,
  owner: KeyOwner,
  key: string,
  {
    name,
    description,
    scopes,
    expires_at,
    queues,
  }: { name: string; description: string; scopes: string[]; expires_at: string | null; queues?: string[] | undefined },
): Promise<ApiKeyRow> {
  const [row] = await sql<ApiKeyRow>`
    insert into api_key (id, hash, preview, org_id, user_id, name, description, scopes, expires_at, queues)
    values (${newId('key')}, ${hashOf(key)}, ${previewOf(key)}, ${owner.org_id}, ${owner.user_id}, ${name}, ${description}, ${scopes}, ${expires_at}, ${queues ?? null})
    returning id, name, description, preview as key_preview, scopes, created_at, expires_at, null as last_used, queues`
  return withoutNulls(row!)
}

export const columns = (sql: Sql) => sql.fragment`
  k.id, k.name, k.description, k.preview as key_preview, k.scopes, k.created_at, k.updated_at, k.expires_at,
  case when k.previous_expires_at > now() then k.previous_expires_at end as previous_expires_at,
  (select max(u.last_at) from api_key_usage u where u.key_id = k.id) as last_used, k.last_ip, k.queues`

/** The owner's keys, newest first; expired ones only if requested (decision D56). */
export async function listApiKeys(
  sql: Sql,
  owner: KeyOwner,
  { active_only, limit, offset }: { active_only: boolean; limit: number; offset: number },
): Promise<{ api_keys: ApiKeyRow[]; total: number }> {
  const where = sql.fragment`
    k.user_id = ${owner.user_id} and k.org_id = ${owner.org_id} and k.revoked_at is null
    and (not ${active_only} or k.expires_at is null or k.expires_at > now())`
  const [count] = await sql.run<{ total: number }>(sql.fragment`select count(*) as total from api_key k where ${where}`)
  const rows = await sql.run<ApiKeyRow>(sql.fragment`
    select ${columns(sql)} from api_key k where ${where} order by k.id desc limit ${limit} offset ${offset}`)
  return { api_keys: rows.map(withoutNulls), total: count?.total ?? 0 }
}

/**
 * A key of the owner; undefined if it does not exist or is revoked. With `lock` its row is locked until the
 * transaction ends.
 */
export async function findApiKey(
  sql: Sql,
  owner: KeyOwner,
  id: string,
  { lock = false } = {},
): Promise<ApiKeyRow | undefined> {
  const [row] = await sql.run<ApiKeyRow>(sql.fragment`
    select ${columns(sql)} from api_key k
    where k.id = ${id} and k.user_id = ${owner.user_id} and k.org_id = ${owner.org_id} and k.revoked_at is null
    ${lock ? sql.fragment`for update of k` : sql.fragment``}`)
  return row && withoutNulls(row)
}

/** Sums hourly rows, so the start of each period is exact to one hour (decision D58). */
export async function findUsage(sql: Sql, key_id: string) {
  const [row] = await sql<{
    total_requests: number
    requests_last_24h: number
    requests_last_7d: number
    requests_last_30d: number
  }>`
    select coalesce(sum(requests), 0)::bigint as total_requests,
      coalesce(sum(requests) filter (where hour > now() - interval '25 hours'), 0)::bigint as requests_last_24h,
      coalesce(sum(requests) filter (where hour > now() - interval '169 hours'), 0)::bigint as requests_last_7d,
      coalesce(sum(requests) filter (where hour > now() - interval '721 hours'), 0)::bigint as requests_last_30d
    from api_key_usage where key_id = ${key_id}`
  return row!
}

/** Changes the given members; undefined if the key does not exist. */
export async function updateApiKey(
  sql: Sql,
  owner: KeyOwner,
  id: string,
  {
    name,
    description,
    scopes,
    queues,
  }: {
    name?: string | undefined
    description?: string | undefined
    scopes?: string[] | undefined
    queues?: string[] | undefined
  },
): Promise<ApiKeyRow | undefined> {
  const [row] = await sql.run<ApiKeyRow>(sql.fragment`
    update api_key k set name = coalesce(${name ?? null}, name), description = coalesce(${description ?? null}, description),
      scopes = coalesce(${scopes ?? null}::text[], scopes), queues = coalesce(${queues ?? null}::text[], queues),
      updated_at = greatest(now(), coalesce(updated_at, created_at) + interval '1 millisecond')
    where id = ${id} and user_id = ${owner.user_id} and org_id = ${owner.org_id} and revoked_at is null
    returning ${columns(sql)}`)
  return row && withoutNulls(row)
}

/** Revokes a key permanently; undefined if it does not exist or is already revoked (decision D57). */
export async function revokeApiKey(sql: Sql, owner: KeyOwner, id: string): Promise<{ revoked_at: string } | undefined> {
  const [row] = await sql<{ revoked_at: string }>`
    update api_key set revoked_at = now()
    where id = ${id} and user_id = ${owner.user_id} and org_id = ${owner.org_id} and revoked_at is null
    returning revoked_at`
  return row
}

/** Revokes all keys of an owner; returns their ids. */
export async function revokeApiKeysOf(tx: Sql, owner: KeyOwner): Promise<string[]> {
  const rows = await tx<{ id: string }>`
    update api_key set revoked_at = now()
    where user_id = ${owner.user_id} and org_id = ${owner.org_id} and revoked_at is null returning id`
  return rows.map(({ id }) => id)
}

/**
 * Omits null members: `updated_at` is present only after an update (decision D55), `previous_expires_at` while two
 * secrets work, `last_ip` after the first use, `queues` if the key is limited to some.
 */
export function withoutNulls<Row extends ApiKeyRow>({ updated_at, previous_expires_at, last_ip, queues, ...row }: Row) {
  return {
    ...row,
    ...(updated_at ? { updated_at } : {}),
    ...(previous_expires_at ? { previous_expires_at } : {}),
    ...(last_ip ? { last_ip } : {}),
    ...(queues ? { queues } : {}),
  }
}
