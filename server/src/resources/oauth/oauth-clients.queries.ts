import { randomBytes } from 'node:crypto'
import { brokenConstraint, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { endGrantsOfClient, findClient, type OAuthClientRow } from './oauth.queries.ts'

/** An app to register (decision D77). */
export interface NewClient {
  /** Generated if absent. */
  client_id?: string | undefined
  name: string
  redirect_uris: string[]
  scopes: string[]
  native: boolean
  /** Null for a public client. */
  secret: string | null
}

/** A secret for a client: 256 random bits as 43 base64url characters (decision D77). */
export function newClientSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** The stored hash of a secret. A slow hash is unnecessary for 256 random bits. */
function secretHash(secret: string | null): string | null {
  return secret === null ? null : hashOf(secret).toString('hex')
}

const columns = (sql: Sql) =>
  sql.fragment`client_id, org_id, name, secret_hash, redirect_uris, scopes, native, created_at, updated_at`

/** Inserts a client; undefined if the id is taken. */
export async function insertClient(tx: Sql, org_id: string, client: NewClient): Promise<OAuthClientRow | undefined> {
  const client_id = client.client_id ?? newId('client')
  try {
    const [row] = await tx.begin((inner) =>
      inner.run<OAuthClientRow>(inner.fragment`
      insert into oauth_client (client_id, org_id, name, secret_hash, redirect_uris, scopes, native)
      values (${client_id}, ${org_id}, ${client.name}, ${secretHash(client.secret)}, ${client.redirect_uris}, ${client.scopes}, ${client.native})
      returning ${columns(inner)}`),
    )
    return row
  } catch (error) {
    if (brokenConstraint(error) === 'oauth_client_pkey') return undefined
    throw error
  }
}

/** Clients of an organization, newest first. */
export async function listClients(
  sql: Sql,
  org_id: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ clients: OAuthClientRow[]; total: number }> {
  const [count] = await sql<{ total: number }>`select count(*) as total from oauth_client where org_id = ${org_id}`
  const clients = await sql.run<OAuthClientRow>(sql.fragment`
    select ${columns(sql)} from oauth_client where org_id = ${org_id}
    order by created_at desc, client_id limit ${limit} offset ${offset}`)
  return { clients, total: count?.total ?? 0 }
}

/** A client, if it belongs to the organization. */
export async function findClientOf(sql: Sql, org_id: string, client_id: string): Promise<OAuthClientRow | undefined> {
  const client = await findClient(sql, client_id)
  return client?.org_id === org_id ? client : undefined
}

/** A client of the organization, locked until the transaction ends. */
export async function lockClientOf(tx: Sql, org_id: string, client_id: string): Promise<OAuthClientRow | undefined> {
  await tx`select 1 from oauth_client where client_id = ${client_id} and org_id = ${org_id} for update`
  return findClientOf(tx, org_id, client_id)
}

/** A change of a client; `secret` replaces the old one immediately. */
export interface ClientChange {
  name?: string | undefined
  redirect_uris?: string[] | undefined
  scopes?: string[] | undefined
  secret?: string | undefined
}

export async function updateClient(
  tx: Sql,
  org_id: string,
  client_id: string,
  change: ClientChange,
): Promise<OAuthClientRow | undefined> {
  const [row] = await tx.run<OAuthClientRow>(tx.fragment`
    update oauth_client set name = coalesce(${change.name ?? null}, name),
      redirect_uris = coalesce(${change.redirect_uris ?? null}::text[], redirect_uris),
      scopes = coalesce(${change.scopes ?? null}::text[], scopes),
      secret_hash = coalesce(${secretHash(change.secret ?? null)}, secret_hash),
      updated_at = greatest(now(), coalesce(updated_at, created_at) + interval '1 millisecond')
    where client_id = ${client_id} and org_id = ${org_id}
    returning ${columns(tx)}`)
  return row
}

/** Deletes a client with its grants and consents. Returns false if it did not exist. */
export async function deleteClient(tx: Sql, org_id: string, client_id: string): Promise<boolean> {
  const rows = await tx`select 1 from oauth_client where client_id = ${client_id} and org_id = ${org_id} for update`
  if (rows.length === 0) return false
  await endGrantsOfClient(tx, client_id)
  await tx`delete from oauth_client where client_id = ${client_id}`
  return true
}
