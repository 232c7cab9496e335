import type { IncomingHttpHeaders } from 'node:http'
import type { BucketName } from '#contract/core/limits.ts'
import type { CredentialKind, Operation } from '#contract/core/operation.ts'
import { notFound, Problem, type ProblemKind } from '#contract/core/problems.ts'
import { sessionScopes, type Role } from '#contract/core/scopes.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { isId } from '../../platform/ids.ts'
import type { Principal } from './principal.ts'
import {
  countStatement,
  governingWindow,
  limitsOf,
  rateLimitProblem,
  windowHeaders,
  type RateSettings,
  type WindowRow,
} from './rate-limit.ts'
import type { Coalescer } from './coalesce.ts'
import type { Uses } from './key-usage.ts'

/** What authentication needs. */
export interface AuthenticationSettings {
  /** The small pool whose commits do not wait for the disk (decision 0003). */
  sql: Sql
  rates: RateSettings
  /** Model tokens that a credential may use per hour (decision D90). */
  tokens_per_hour: number
  /** Returns the value of a signed cookie; undefined for a wrong signature. */
  unsignCookie: (signed: string) => string | undefined
  cookies: (header: string | undefined) => Record<string, string | undefined>
  /** Lets concurrent requests of one credential share a statement. */
  coalesce: Coalescer
  uses: Uses
  /** Whether the service issued a lease token; any other is a forgery. */
  isLease: (token: string) => boolean
}

/** A principal, and the headers of its limits. */
export interface Authenticated {
  principal: Principal
  headers: Record<string, string>
  /** Set if a limit refused the request, or if its user has no organization. It is thrown after the headers are set. */
  refused: Problem | undefined
}

/** A credential as presented, before any check. */
export type Presented =
  | { kind: 'api_key'; key: string }
  | { kind: 'token'; token: string }
  | { kind: 'session'; cookie: string }
  | { kind: 'lease'; token: string }

/** Prefixes of API keys and of lease tokens; no OAuth token has one. */
const keyPrefix = 'cadre_'
const leasePrefix = 'lease_'

/**
 * The credential of a request that counts (decision D20): `Authorization` before `X-API-Key` before the cookie, without
 * falling back. A bearer with the prefix of keys is an API key, because clients of other APIs send keys there.
 * Undefined without a credential.
 */
export function presentedCredential(
  headers: IncomingHttpHeaders,
  cookies: AuthenticationSettings['cookies'],
): Presented | undefined {
  const { authorization } = headers
  if (authorization !== undefined) {
    const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? ''
    if (bearer.startsWith(leasePrefix)) return { kind: 'lease', token: bearer }
    return bearer.startsWith(keyPrefix) ? { kind: 'api_key', key: bearer } : { kind: 'token', token: bearer }
  }
  const key = headers['x-api-key']
  if (key !== undefined) return { kind: 'api_key', key: Array.isArray(key) ? '' : key }
  const cookie = cookies(headers.cookie).cadre_session
  return cookie === undefined ? undefined : { kind: 'session', cookie }
}

/**
 * Authenticates a request and counts it in its windows, by one statement: a revoked credential stops working with the
 * next request, and the counts are exact across processes (decision 0003). Requests of one credential that arrive while
 * such a statement is in flight share the next one, because its row is written by one statement at a time anyway. If a
 * connection breaks between the commit and its response, those that shared the statement are counted twice: windows may
 * then admit fewer requests, never more.
 *
 * A request over its limit is returned as `refused`, so that its response has the headers too.
 * @throws the 401 problems of decision D23, `organization_not_found`
 */
export async function authenticate(
  settings: AuthenticationSettings,
  operation: Pick<Operation, 'bucket' | 'personal' | 'error_format'>,
  headers: IncomingHttpHeaders,
): Promise<Authenticated> {
  const presented = presentedCredential(headers, settings.cookies)
  if (!presented)
    throw new Problem('unauthorized', undefined, {
      message:
        'Credentials are missing. Send an API key as X-API-Key, or an API key or access token as Authorization: Bearer.',
    })
  if (presented.kind === 'lease' && !settings.isLease(presented.token)) throw new ForgedLease()
  const lookup = lookups[presented.kind](settings, presented, headers)
  if (!lookup) throw new Problem(unknownKinds[presented.kind])

  const { sql, rates } = settings
  const bucket = operation.bucket ?? 'general'
  const limits = limitsOf(bucket, rates, presented.kind)
  const look = async (requests: number, uses: number): Promise<AuthenticationRow | undefined> =>
    (
      await sql.run<AuthenticationRow>(
        statement(sql, lookup(), presented.kind, { bucket, limits, counted: rates.enabled, requests, uses }),
      )
    )[0]
  const key = JSON.stringify([presented, headers['x-organization-id'], bucket])
  const { answer, place, of } = await settings.coalesce(key, (requests) => look(requests, requests))
  const row = rates.enabled ? await ownShare(answer, place, of, () => look(1, 0)) : answer

  if (!row || row.state === 'unknown') throw new Problem(unknownKinds[presented.kind])
  if (row.state === 'expired')
    throw new Problem(presented.kind === 'token' ? 'expired_token' : unknownKinds[presented.kind])
  if (row.state === 'no_organization')
    throw notFound('organization_not_found', 'organization', String(headers['x-organization-id']))
  // A token for one resource is not valid for another (RFC 8707).
  if (presented.kind === 'token' && isForMcp(row.audience) !== (operation.error_format === 'mcp'))
    throw new Problem('invalid_token')
  const principal: Principal = {
    kind: presented.kind,
    credential_id: row.credential_id,
    subject: row.subject,
    user_id: row.user_id,
    org_id: row.org_id ?? '',
    role: row.role ?? 'viewer',
    scopes: presented.kind === 'session' ? (row.role === null ? [] : sessionScopes(row.role)) : row.scopes,
    ...(presented.kind === 'token' && { audience: row.audience }),
    ...(row.lease && { lease: row.lease }),
    ...(row.queues && { queues: row.queues }),
  }
  const homeless =
    row.org_id === null && !operation.personal
      ? new Problem('insufficient_permissions', undefined, {
          message: 'You belong to no organization. Ask for an invitation to one.',
        })
      : undefined
  if (!rates.enabled) return { principal, headers: {}, refused: homeless }

  const window = governingWindow(row, limits)
  const general = limitsOf('general', rates, presented.kind)
  return {
    principal,
    headers: {
      'x-ratelimit-limit-requests': String(general.hour),
      'x-ratelimit-remaining-requests': String(
        Math.max(0, general.hour - (bucket === 'general' ? row.hour_used : row.general_used)),
      ),
      // Clients of OpenAI expect a duration.
      'x-ratelimit-reset-requests':
        operation.error_format === 'openai'
          ? `${Math.max(0, row.hour_reset - Math.floor(row.now))}s`
          : String(row.hour_reset),
      'x-ratelimit-limit-tokens': String(settings.tokens_per_hour),
      'x-ratelimit-remaining-tokens': String(Math.max(0, settings.tokens_per_hour - row.tokens_used)),
      'x-ratelimit-reset-tokens': String(row.hour_reset),
      ...windowHeaders(window, row.now),
    },
    refused: row.admitted ? homeless : rateLimitProblem(bucket, { ...window, remaining: 0 }, row.now),
  }
}

/** A lease token that this service never issued; it is recorded. */
export class ForgedLease extends Problem {
  constructor() {
    super('invalid_token', undefined, { message: 'This service did not issue the lease token.' })
  }
}

/** Whether a token was requested for the MCP endpoint of this service, or of one of its agents. */
function isForMcp(audience: string | null): boolean {
  return audience !== null && /\/mcp(\/agents\/[^/]+)?$/.test(audience)
}

/**
 * The share of one request in a shared count. If the requests did not all fit the windows, none was counted, and each
 * is counted alone.
 */
async function ownShare(
  row: AuthenticationRow | undefined,
  place: number,
  of: number,
  alone: () => Promise<AuthenticationRow | undefined>,
): Promise<AuthenticationRow | undefined> {
  if (!row || row.state !== 'ok' || of === 1) return row
  if (!row.admitted) return alone()
  const later = of - 1 - place
  return { ...row, hour_used: row.hour_used - later, minute_used: row.minute_used - later }
}

interface AuthenticationRow extends WindowRow, Omit<Principal, 'kind' | 'org_id' | 'role' | 'audience' | 'queues'> {
  /** Of an API key; null if it may claim from every queue. */
  queues?: string[] | null
  /** `no_organization`: the user is not a member of the requested organization. */
  state: 'ok' | 'unknown' | 'expired' | 'no_organization'
  /** Null if the user belongs to no organization. */
  org_id: string | null
  role: Role | null
  general_used: number
  tokens_used: number
  /** Of a token: the resource that it was requested for. */
  audience: string | null
}

type Fragment = ReturnType<Sql['fragment']>

const unknownKinds: Record<CredentialKind, ProblemKind> = {
  api_key: 'invalid_api_key',
  token: 'invalid_token',
  session: 'unauthorized',
  // The service issued it, and it holds nothing any more.
  lease: 'lease_lost',
}

/**
 * The lookup of each kind of credential: a select of state, credential_id, subject, user_id, org_id, role and scopes,
 * with at most one row. Undefined for a malformed credential, which needs no query. The select is only made for the
 * caller that runs the shared query.
 */
const lookups: Record<
  CredentialKind,
  (settings: AuthenticationSettings, presented: Presented, headers: IncomingHttpHeaders) => (() => Fragment) | undefined
> = {
  api_key({ sql }, presented) {
    if (presented.kind !== 'api_key' || !/^cadre_[0-9a-f]{32}$/.test(presented.key)) return undefined
    const { key } = presented
    return () => {
      const hash = hashOf(key)
      // After a rotation, the previous secret works until its time is over.
      return sql.fragment`
      select case when k.expires_at <= now() then 'expired' else 'ok' end as state,
        k.id as credential_id, k.id as subject, k.user_id, k.org_id, m.role, k.scopes, k.queues
      from api_key k
      join member m on m.org_id = k.org_id and m.user_id = k.user_id
      join app_user u on u.id = k.user_id and u.disabled_at is null
      where (k.hash = ${hash} or (k.previous_hash = ${hash} and k.previous_expires_at > now())) and k.revoked_at is null`
    }
  },
  token({ sql }, presented) {
    if (presented.kind !== 'token' || !/^[A-Za-z0-9\-._~+/]{20,512}=*$/.test(presented.token)) return undefined
    const { token } = presented
    // The token must belong to a grant that still exists: revoking a grant deletes it and its tokens. A scope that was
    // removed from the app since does not count (decision D81).
    return () => sql.fragment`
      select case when t.expires_at <= now() then 'expired' else 'ok' end as state,
        g.id as credential_id, g.id as subject, g.user_id, g.org_id, m.role,
        array(select s from unnest(string_to_array(t.payload->>'scope', ' ')) s where s = any(c.scopes)) as scopes, t.payload->>'aud' as audience
      from oauth_artifact t
      join oauth_grant g on g.id = t.grant_id
      join oauth_client c on c.client_id = g.client_id
      join member m on m.org_id = g.org_id and m.user_id = g.user_id
      join app_user u on u.id = g.user_id and u.disabled_at is null
      where t.kind = 'AccessToken' and t.id = ${hashOf(token)}`
  },
  session(settings, presented, headers) {
    const secret = presented.kind === 'session' ? settings.unsignCookie(presented.cookie) : undefined
    if (secret === undefined) return undefined
    const { sql } = settings
    const wanted = headers['x-organization-id']
    const org_id = wanted === undefined || wanted === '' ? null : String(wanted)
    if (org_id !== null && !isId('org', org_id))
      throw notFound('organization_not_found', 'organization', org_id.slice(0, 100))
    return () => sql.fragment`
      select case when m.org_id is null and ${org_id}::text is not null then 'no_organization' else 'ok' end as state,
        s.id as credential_id, s.user_id as subject, s.user_id, m.org_id, m.role, '{}'::text[] as scopes
      from session s
      join app_user u on u.id = s.user_id and u.disabled_at is null
      left join lateral (
        select org_id, role from member where user_id = s.user_id and (${org_id}::text is null or org_id = ${org_id})
        order by joined_at, org_id limit 1
      ) m on true
      where s.secret_hash = ${hashOf(secret)} and s.expires_at > now() and s.idle_expires_at > now()`
  },
  // Whether the lease still holds is checked under the task's lock. It ends with the credential that claimed it, and has
  // its scopes; a cookie has those of the role.
  lease({ sql }, presented) {
    if (presented.kind !== 'lease') return undefined
    const hash = hashOf(presented.token)
    return () => sql.fragment`
      select 'ok' as state, w.lease_id as credential_id, w.lease_id as subject, w.claimed_by as user_id, p.org_id, m.role,
        case when k.id is not null then k.scopes when s.id is not null then '{work:execute}'
          else array(select scope from unnest(g.scopes) scope where scope = any(c.scopes)) end as scopes,
        jsonb_build_object('task_id', w.task_id, 'project_id', w.project_id, 'attempt', w.attempt) as lease
      from work w
      join project p on p.id = w.project_id
      join member m on m.org_id = p.org_id and m.user_id = w.claimed_by
      join app_user u on u.id = w.claimed_by and u.disabled_at is null
      left join api_key k on k.id = w.credential_id and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > now())
      left join oauth_grant g on g.id = w.credential_id and g.expires_at > now()
      left join oauth_client c on c.client_id = g.client_id
      left join session s on s.id = w.credential_id and s.expires_at > now() and s.idle_expires_at > now()
      where w.lease_hash = ${hash} and coalesce(k.id, g.id, s.id) is not null`
  },
}

/** What else a use of a credential updates: usage of keys, last activity of grants and sessions. */
const touches: Record<CredentialKind, (sql: Sql, uses: number) => Fragment> = {
  api_key: (sql, uses) => sql.fragment`
    insert into api_key_usage as u (key_id, hour, requests, last_at)
    select credential_id, date_trunc('hour', now(), 'UTC'), ${uses}::bigint, now() from principal where state = 'ok'
    on conflict (key_id, hour) do update set requests = u.requests + excluded.requests, last_at = greatest(u.last_at, excluded.last_at)`,
  token: (sql) => sql.fragment`
    update oauth_grant g set last_activity = now() from principal p
    where g.id = p.credential_id and g.last_activity < now() - interval '1 minute'`,
  // The idle limit is 7 days, extended at most once an hour (decision D65).
  session: (sql) => sql.fragment`
    update session s set last_activity = now(),
      idle_expires_at = case when s.idle_expires_at < now() + interval '7 days' - interval '1 hour'
        then least(now() + interval '7 days', s.expires_at) else s.idle_expires_at end
    from principal p where s.id = p.credential_id and s.last_activity < now() - interval '1 minute'`,
  // Its heartbeats show its use.
  lease: (sql) => sql.fragment`select 1`,
}

function statement(
  sql: Sql,
  lookup: Fragment,
  kind: CredentialKind,
  {
    bucket,
    limits,
    counted,
    requests,
    uses,
  }: {
    bucket: BucketName
    limits: { hour: number; minute: number }
    counted: boolean
    /** Number of requests to count in the windows, all or none, and number of uses of the credential. */
    requests: number
    uses: number
  },
): Fragment {
  const touched = touches[kind](sql, uses)
  if (!counted)
    return sql.fragment`with principal as materialized (${lookup}), touched as (${touched}) select * from principal`
  const source = sql.fragment`select subject from principal where state = 'ok'`
  return sql.fragment`
    with principal as materialized (${lookup}),
    touched as (${touched}),
    counted as (${countStatement(sql, bucket, source, limits, requests)})
    select p.*, c.admitted, c.hour_used, c.minute_used, c.hour_reset, c.minute_reset, c.now,
      coalesce((select case when g.hour_start >= date_trunc('hour', now(), 'UTC') then g.hour_used else 0 end
        from rate_window g where g.subject = p.subject and g.bucket = 'general'), 0) as general_used,
      coalesce((select t.tokens from token_usage t
        where t.subject = p.subject and t.hour = date_trunc('hour', now(), 'UTC')), 0) as tokens_used
    from principal p left join counted c on true`
}
