import type { Sql } from '../../platform/postgres/database.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { newId } from '../../platform/ids.ts'
import { isDocumentAddress } from './client-documents.ts'
import { lifetimes, sweepDelay_seconds } from './provider/lifetimes.ts'

/** An app that may ask users for access (decision D77). */
export interface OAuthClientRow {
  client_id: string
  /** Who registered it; null for an app that is known by its metadata document, whose address is `client_id`. */
  org_id: string | null
  name: string
  /** SHA-256 of the secret in hexadecimal; null for a public client. */
  secret_hash: string | null
  redirect_uris: string[]
  scopes: string[]
  /** Runs on its user's machine: the port of a loopback redirect URI may vary. */
  native: boolean
  created_at: string
  updated_at: string | null
}

/** Known by the address of its metadata document, or by what it sent: no organization registered it. */
export function isUnregistered({ org_id }: OAuthClientRow): boolean {
  return org_id === null
}

export async function findClient(sql: Sql, client_id: string): Promise<OAuthClientRow | undefined> {
  if (!/^[\x21-\x7e]{1,128}$/.test(client_id) && !isDocumentAddress(client_id)) return undefined
  const [row] = await sql<OAuthClientRow>`
    select client_id, org_id, name, secret_hash, redirect_uris, scopes, native, created_at, updated_at
    from oauth_client where client_id = ${client_id}`
  return row
}

/** The name of the app whose authorization waits under `uid`, for the page where its user signs in. */
export async function findWaitingApp(sql: Sql, uid: string): Promise<string | undefined> {
  const [row] = await sql<{ name: string }>`
    select c.name from oauth_artifact a join oauth_client c on c.client_id = a.payload->'params'->>'client_id'
    where a.kind = 'Interaction' and a.id = ${hashOf(uid)} and a.expires_at > now()`
  return row?.name
}

/** Whether a session began after the authorization did: what an app asks for with `prompt=login`. */
export async function isSignedInSince(sql: Sql, session_id: string, uid: string): Promise<boolean> {
  const [row] = await sql`
    select 1 from session s join oauth_artifact a on a.created_at <= s.created_at
    where s.id = ${session_id} and a.kind = 'Interaction' and a.id = ${hashOf(uid)}`
  return row !== undefined
}

/** An organization of a user, to choose from when an app is let in. */
export interface Membership {
  id: string
  name: string
}

/** The user's organizations that let this app in, the one joined first before the others. */
export async function listMemberships(sql: Sql, user_id: string, client: OAuthClientRow): Promise<Membership[]> {
  return sql<Membership>`
    select o.id, o.name from member m join organization o on o.id = m.org_id
    where m.user_id = ${user_id} and (o.client_documents or ${!isUnregistered(client)})
    order by m.joined_at, o.id`
}

/** The organization that registered an app; where none did, the host of its metadata document, or where its answers go. */
export interface Publisher {
  name: string
  /** Whether the user who decides belongs to it. */
  is_own: boolean
}

export async function findPublisher(sql: Sql, client: OAuthClientRow, user_id: string): Promise<Publisher> {
  if (isUnregistered(client)) return { name: new URL(placeOf(client)).host, is_own: false }
  const [row] = await sql<Publisher>`
    select o.name, exists (select from member m where m.org_id = o.id and m.user_id = ${user_id}) as is_own
    from organization o where o.id = ${client.org_id}`
  // The app was removed with its organization since it was read.
  return row ?? { name: 'unknown', is_own: false }
}

function placeOf({ client_id, redirect_uris }: OAuthClientRow): string {
  return isDocumentAddress(client_id) ? client_id : redirect_uris[0]!
}

/** What a user has allowed an app before. */
export interface Consent {
  org_id: string
  scopes: string[]
}

/** Undefined too when the user has left the organization since. */
export async function findConsent(sql: Sql, user_id: string, client_id: string): Promise<Consent | undefined> {
  const [row] = await sql<Consent>`
    select c.org_id, c.scopes from oauth_consent c
    join member m on m.org_id = c.org_id and m.user_id = c.user_id
    where c.user_id = ${user_id} and c.client_id = ${client_id}`
  return row
}

/** Adds to what was allowed before; another organization starts anew. */
export async function rememberConsent(
  tx: Sql,
  user_id: string,
  client_id: string,
  { org_id, scopes }: Consent,
): Promise<void> {
  await tx`
    insert into oauth_consent as c (user_id, client_id, org_id, scopes)
    values (${user_id}, ${client_id}, ${org_id}, ${scopes})
    on conflict (user_id, client_id) do update set
      org_id = excluded.org_id,
      scopes = case when c.org_id = excluded.org_id
        then (select array_agg(distinct scope) from unnest(c.scopes || excluded.scopes) scope)
        else excluded.scopes end`
}

/** What a user has just allowed, and from where. */
export interface NewGrant {
  user_id: string
  org_id: string
  client_id: string
  scopes: string[]
  /** The resource that it is for; null for the API. */
  resource: string | null
  ip: string
  user_agent: string
}

/**
 * Begins a grant, one an authorization (decisions O1, D63). Until its code is exchanged it only lives as long as an
 * authorization may take. Undefined when the user is not a member of the organization, or it does not let the app in.
 */
export async function insertGrant(tx: Sql, grant: NewGrant): Promise<string | undefined> {
  const id = newId('sess')
  const [row] = await tx<{ id: string }>`
    insert into oauth_grant (id, user_id, org_id, client_id, scopes, resource, expires_at, ip, user_agent)
    select ${id}, m.user_id, m.org_id, ${grant.client_id}, ${grant.scopes}, ${grant.resource},
      now() + make_interval(secs => ${lifetimes.interaction + lifetimes.code}), ${grant.ip}, ${grant.user_agent}
    from member m join organization o on o.id = m.org_id
    where m.user_id = ${grant.user_id} and m.org_id = ${grant.org_id}
      and (o.client_documents or not exists (
        select from oauth_client c where c.client_id = ${grant.client_id} and c.document_until is not null))
    for share of o
    returning id`
  return row?.id
}

/** A grant was used at the token endpoint: its session lasts as long as its newest refresh token (decision D63). */
export async function touchGrant(tx: Sql, id: string, from: { ip: string; user_agent: string }): Promise<void> {
  await tx`
    update oauth_grant set last_activity = now(), ip = ${from.ip}, user_agent = ${from.user_agent},
      expires_at = least(created_at + make_interval(secs => ${lifetimes.grant}), now() + make_interval(secs => ${lifetimes.refresh_token}))
    where id = ${id}`
}

/** Whose grant it is. */
export interface GrantOwner {
  id: string
  user_id: string
  org_id: string
  client_id: string
}

/** Whose a grant is; undefined where there is none. */
export async function findGrantOwner(sql: Sql, id: string): Promise<GrantOwner | undefined> {
  const [owner] = await sql<GrantOwner>`select id, user_id, org_id, client_id from oauth_grant where id = ${id}`
  return owner
}

/**
 * Ends a grant: its tokens stop working with the next request. Undefined when there is none.
 * The grant's row is deleted first: a concurrent refresh holds a lock on it, so its new tokens are visible to the
 * second statement, which deletes them.
 */
export async function endGrant(tx: Sql, id: string): Promise<GrantOwner | undefined> {
  const [ended] = await deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where id = ${id} returning id, user_id, org_id, client_id`,
  )
  return ended
}

/** The same for one of a user's own. */
export async function endGrantOf(tx: Sql, user_id: string, id: string): Promise<GrantOwner | undefined> {
  const [ended] = await deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where id = ${id} and user_id = ${user_id} returning id, user_id, org_id, client_id`,
  )
  return ended
}

/** Ends all grants of a user but `except`; returns those that ended. */
export async function endGrantsOf(tx: Sql, user_id: string, except: string): Promise<GrantOwner[]> {
  return deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where user_id = ${user_id} and id <> ${except} returning id, user_id, org_id, client_id`,
  )
}

/** Ends all grants of a user in one organization; returns those that ended. */
export async function endGrantsOfMember(tx: Sql, user_id: string, org_id: string): Promise<GrantOwner[]> {
  return deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where user_id = ${user_id} and org_id = ${org_id} returning id, user_id, org_id, client_id`,
  )
}

/** Ends all grants of an app. */
export async function endGrantsOfClient(tx: Sql, client_id: string): Promise<GrantOwner[]> {
  return deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where client_id = ${client_id} returning id, user_id, org_id, client_id`,
  )
}

/** Ends all grants of an organization to apps that are known by their metadata document. */
export async function endGrantsOfDocuments(tx: Sql, org_id: string): Promise<GrantOwner[]> {
  return deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant g using oauth_client c
    where g.org_id = ${org_id} and c.client_id = g.client_id and c.document_until is not null
    returning g.id, g.user_id, g.org_id, g.client_id`,
  )
}

async function deleteArtifacts(tx: Sql, ended: GrantOwner[]): Promise<GrantOwner[]> {
  if (ended.length > 0) await tx`delete from oauth_artifact where grant_id = any(${ended.map(({ id }) => id)})`
  return ended
}

/** The user no longer wants this app to be let in without being asked. */
export async function forgetConsent(tx: Sql, user_id: string, client_id: string): Promise<void> {
  await tx`delete from oauth_consent where user_id = ${user_id} and client_id = ${client_id}`
}

/** Nor any app into this organization. */
export async function forgetConsentsOf(tx: Sql, user_id: string, org_id: string): Promise<void> {
  await tx`delete from oauth_consent where user_id = ${user_id} and org_id = ${org_id}`
}

/** Rows that one statement removes, so that a sweep blocks no request for long. */
const sweepBatch = 1000

/**
 * Removes what has been expired for a day, and grants that expired, up to 1,000 of either; returns the larger count.
 */
export async function sweepOAuth(sql: Sql): Promise<number> {
  const artifacts = await sql`
    delete from oauth_artifact where (kind, id) in (
      select kind, id from oauth_artifact where expires_at < now() - make_interval(secs => ${sweepDelay_seconds})
      order by expires_at limit ${sweepBatch} for update skip locked)
    returning kind`
  const grants = await sql`
    delete from oauth_grant where id in (
      select id from oauth_grant where expires_at < now() order by expires_at limit ${sweepBatch} for update skip locked)
    returning id`
  return Math.max(artifacts.length, grants.length)
}
