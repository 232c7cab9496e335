import { randomBytes } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { readSessionCookie } from '../../../http/pages/session-cookie.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { hashOf } from '../../../platform/crypto/hash-of.ts'
import { newId } from '../../../platform/ids.ts'

/** A session in a response (spec 2.6): a cookie sign-in or an OAuth grant (decision D63). */
export interface SessionRow {
  id: string
  user_id: string
  created_at: string
  expires_at: string
  last_activity: string
  ip_address: string
  user_agent: string
}

/** Client of a request. */
export interface RequestSource {
  ip: string
  user_agent: string
}

/** Creates a cookie session. `secret` is the value of the cookie, 256 random bits; only its SHA-256 is stored. */
export async function insertSession(
  tx: Sql,
  user_id: string,
  from: RequestSource,
): Promise<{ session: SessionRow; secret: string }> {
  const secret = randomBytes(32).toString('base64url')
  const [session] = await tx<SessionRow>`
    insert into session (id, secret_hash, user_id, idle_expires_at, expires_at, ip, user_agent)
    values (${newId('sess')}, ${hashOf(secret)}, ${user_id}, now() + interval '7 days', now() + interval '30 days',
      ${from.ip}, ${from.user_agent})
    returning id, user_id, created_at, expires_at, last_activity, ip as ip_address, user_agent`
  if (!session) throw new Error('an inserted session is returned')
  return { session, secret }
}

/** A user who is signed in by cookie, for the pages. */
export interface SignedInUser {
  session_id: string
  user_id: string
  name: string
  email: string
}

/**
 * The user of the cookie session of a request; undefined if the session has ended or expired, or the user is
 * disabled.
 */
export async function findSignedInUser(sql: Sql, request: FastifyRequest): Promise<SignedInUser | undefined> {
  const secret = readSessionCookie(request)
  if (secret === undefined) return undefined
  const [row] = await sql<SignedInUser>`
    select s.id as session_id, u.id as user_id, u.name, u.email
    from session s join app_user u on u.id = s.user_id and u.disabled_at is null
    where s.secret_hash = ${hashOf(secret)} and s.expires_at > now() and s.idle_expires_at > now()`
  return row
}

/** Whether a cookie session began in the last `minutes`, so that its user has just authenticated. */
export async function isSessionRecent(sql: Sql, id: string, minutes: number): Promise<boolean> {
  const rows = await sql`
    select 1 from session where id = ${id} and created_at > now() - make_interval(mins => ${minutes})`
  return rows.length > 0
}

/** Locks a session so that it cannot end before the transaction does; false if it has ended. */
export async function holdSession(tx: Sql, id: string): Promise<boolean> {
  const rows = await tx`select 1 from session where id = ${id} for share`
  return rows.length > 0
}

/** Ends the session of a cookie, if there is one. */
export async function endSessionOfCookie(tx: Sql, secret: string): Promise<void> {
  await tx`delete from session where secret_hash = ${hashOf(secret)}`
}

/** A session, with the app of the grant. */
export interface ListedSession extends SessionRow {
  app: { client_id: string; name: string; scopes: string[]; resource: string | null } | null
}

/** All sessions of a user, cookies and grants, latest activity first. */
export async function listSessions(
  sql: Sql,
  user_id: string,
  { limit, offset }: { limit: number | undefined; offset: number },
): Promise<ListedSession[]> {
  return sql<ListedSession>`
    select id, user_id, created_at, expires_at, last_activity, ip as ip_address, user_agent, null::jsonb as app from session
    where user_id = ${user_id} and expires_at > now() and idle_expires_at > now()
    union all
    select g.id, g.user_id, g.created_at, g.expires_at, g.last_activity, g.ip, g.user_agent,
      jsonb_build_object('client_id', c.client_id, 'name', c.name, 'scopes', g.scopes, 'resource', g.resource)
    from oauth_grant g join oauth_client c using (client_id) where g.user_id = ${user_id} and g.expires_at > now()
    order by last_activity desc, id limit ${limit ?? null} offset ${offset}`
}

/** One session of a user. */
export async function findSession(sql: Sql, user_id: string, id: string): Promise<SessionRow | undefined> {
  const [row] = await sql<SessionRow>`
    select id, user_id, created_at, expires_at, last_activity, ip as ip_address, user_agent from session
    where id = ${id} and user_id = ${user_id}
    union all
    select id, user_id, created_at, expires_at, last_activity, ip, user_agent from oauth_grant
    where id = ${id} and user_id = ${user_id}`
  return row
}

/** Ends a cookie session of a user; false if it does not exist. */
export async function endSession(tx: Sql, user_id: string, id: string): Promise<boolean> {
  const rows = await tx`delete from session where id = ${id} and user_id = ${user_id} returning id`
  return rows.length > 0
}

/** Ends all cookie sessions of a user except `except`; returns how many. */
export async function endSessionsOf(tx: Sql, user_id: string, except: string): Promise<number> {
  const rows = await tx`delete from session where user_id = ${user_id} and id <> ${except} returning id`
  return rows.length
}
