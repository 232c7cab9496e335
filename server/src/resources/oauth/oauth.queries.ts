import type { Sql } from '../../platform/postgres/database.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { newId } from '../../platform/ids.ts'
import { isDocumentAddress } from './client-documents.ts'
import { lifetimes, sweepDelay_seconds } from './provider/lifetimes.ts'

/** An app that may ask users for access (decision D77). */
export interface OAuthClientRow {
  client_id: string
  /**
   * The organization that registered it; null for an unregistered app, which is known by its metadata document or
   * registered itself.
   */
  org_id: string | null
  name: string
  /** SHA-256 of the secret in hexadecimal; null for a public client. */
  secret_hash: string | null
  redirect_uris: string[]
  scopes: string[]
  /** Whether it runs on the user's machine, so that the port of a loopback redirect URI may vary. */
  native: boolean
  created_at: string
  updated_at: string | null
}

/** Whether no organization registered the app: it is known by its metadata document or registered itself. */
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

/** The name of the app of a waiting authorization, for the sign-in page. */
export async function findWaitingApp(sql: Sql, uid: string): Promise<string | undefined> {
  const [row] = await sql<{ name: string }>`
    select c.name from oauth_artifact a join oauth_client c on c.client_id = a.payload->'params'->>'client_id'
    where a.kind = 'Interaction' and a.id = ${hashOf(uid)} and a.expires_at > now()`
  return row?.name
}

/** Whether a session is newer than the authorization, as `prompt=login` requires. */
export async function isSignedInSince(sql: Sql, session_id: string, uid: string): Promise<boolean> {
  const [row] = await sql`
    select 1 from session s join oauth_artifact a on a.created_at <= s.created_at
    where s.id = ${session_id} and a.kind = 'Interaction' and a.id = ${hashOf(uid)}`
  return row !== undefined
}

/** An organization of a user for the choice on the consent page. */
export interface Membership {
  id: string
  name: string
}

/** The user's organizations that allow this app, in the order of joining. */
export async function listMemberships(sql: Sql, user_id: string, client: OAuthClientRow): Promise<Membership[]> {
  return sql<Membership>`
    select o.id, o.name from member m join organization o on o.id = m.org_id
    where m.user_id = ${user_id} and (o.client_documents or ${!isUnregistered(client)})
    order by m.joined_at, o.id`
}

/**
 * The publisher of an app: the organization that registered it, or else the host of its metadata document or redirect
 * URI.
 */
export interface Publisher {
  name: string
  /** Whether the deciding user belongs to it. */
  is_own: boolean
}

export async function findPublisher(sql: Sql, client: OAuthClientRow, user_id: string): Promise<Publisher> {
  if (isUnregistered(client)) return { name: new URL(placeOf(client)).host, is_own: false }
  const [row] = await sql<Publisher>`
    select o.name, exists (select from member m where m.org_id = o.id and m.user_id = ${user_id}) as is_own
    from organization o where o.id = ${client.org_id}`
  // The app was deleted with its organization since it was read.
  return row ?? { name: 'unknown', is_own: false }
}

function placeOf({ client_id, redirect_uris }: OAuthClientRow): string {
  return isDocumentAddress(client_id) ? client_id : redirect_uris[0]!
}

/** The remembered consent of a user for an app. */
export interface Consent {
  org_id: string
  scopes: string[]
}

/** The remembered consent; undefined if there is none or the user has left the organization. */
export async function findConsent(sql: Sql, user_id: string, client_id: string): Promise<Consent | undefined> {
  const [row] = await sql<Consent>`
    select c.org_id, c.scopes from oauth_consent c
    join member m on m.org_id = c.org_id and m.user_id = c.user_id
    where c.user_id = ${user_id} and c.client_id = ${client_id}`
  return row
}

/** Adds scopes to the remembered consent; for another organization, replaces it. */
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

/** A new grant of a user, with the origin of the request. */
export interface NewGrant {
  user_id: string
  org_id: string
  client_id: string
  scopes: string[]
  /** The resource of the grant; null for the API. */
  resource: string | null
  ip: string
  user_agent: string
}

/**
 * Creates a grant for an authorization (decisions O1, D63). Until its code is exchanged, it expires like an
 * authorization. Undefined if the user is not a member of the organization, or the organization does not allow the
 * app.
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

/** Extends a grant after a use at the token endpoint: it lasts as long as its newest refresh token (decision D63). */
export async function touchGrant(tx: Sql, id: string, from: { ip: string; user_agent: string }): Promise<void> {
  await tx`
    update oauth_grant set last_activity = now(), ip = ${from.ip}, user_agent = ${from.user_agent},
      expires_at = least(created_at + make_interval(secs => ${lifetimes.grant}), now() + make_interval(secs => ${lifetimes.refresh_token}))
    where id = ${id}`
}

/** A grant with its user, organization and app. */
export interface GrantOwner {
  id: string
  user_id: string
  org_id: string
  client_id: string
}

/** The owner of a grant; undefined if it does not exist. */
export async function findGrantOwner(sql: Sql, id: string): Promise<GrantOwner | undefined> {
  const [owner] = await sql<GrantOwner>`select id, user_id, org_id, client_id from oauth_grant where id = ${id}`
  return owner
}

/**
 * Ends a grant; its tokens stop working with their next request. Undefined if it does not exist. The grant's row is
 * deleted first: a concurrent refresh holds a lock on it, so its new tokens are visible to the second statement,
 * which deletes them.
 */
export async function endGrant(tx: Sql, id: string): Promise<GrantOwner | undefined> {
  const [ended] = await deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where id = ${id} returning id, user_id, org_id, client_id`,
  )
  return ended
}

/** Ends a grant of a user; undefined if the user has no such grant. */
export async function endGrantOf(tx: Sql, user_id: string, id: string): Promise<GrantOwner | undefined> {
  const [ended] = await deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where id = ${id} and user_id = ${user_id} returning id, user_id, org_id, client_id`,
  )
  return ended
}

/** Ends all grants of a user except `except`; returns the ended ones. */
export async function endGrantsOf(tx: Sql, user_id: string, except: string): Promise<GrantOwner[]> {
  return deleteArtifacts(
    tx,
    await tx<GrantOwner>`
    delete from oauth_grant where user_id = ${user_id} and id <> ${except} returning id, user_id, org_id, client_id`,
  )
}

/** Ends all grants of a user in one organization; returns the ended ones. */
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

/** Ends all grants of an organization to unregistered apps. */
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

/** Deletes the remembered consent of a user for an app. */
export async function forgetConsent(tx: Sql, user_id: string, client_id: string): Promise<void> {
  await tx`delete from oauth_consent where user_id = ${user_id} and client_id = ${client_id}`
}

/** Deletes all remembered consents of a user in an organization. */
export async function forgetConsentsOf(tx: Sql, user_id: string, org_id: string): Promise<void> {
  await tx`delete from oauth_consent where user_id = ${user_id} and org_id = ${org_id}`
}

/** Maximum number of rows per statement, so that a sweep does not block requests for long. */
const sweepBatch = 1000

/**
 * Removes artifacts that expired more than a day ago, and expired grants, up to 1,000 of each; returns the larger
 * count.
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
