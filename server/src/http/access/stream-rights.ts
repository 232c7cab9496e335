import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Operation } from '#contract/core/operation.ts'
import { hasScope, isAdministrator, roleAllows, type Role } from '#contract/core/scopes.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { LiveList } from '../../platform/memory/live-list.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { presentedCredential } from './authenticate.ts'
import type { Principal } from './principal.ts'

/** Interval of the checks: the longest time that a stream or wait continues after its reader lost the right to it. */
const check_ms = 5000

/**
 * Ends streams and waits whose readers have lost the right to read them, because a stream is one request and may last
 * for days.
 */
export interface StreamRights {
  /** Guards the response of a request with these headers until its connection closes. */
  guard(
    principal: Principal,
    operation: Guarded['operation'],
    headers: IncomingHttpHeaders,
    response: ServerResponse,
  ): void
}

interface Guarded {
  response: ServerResponse
  principal: Principal
  operation: Pick<Operation, 'scope' | 'administrators'>
  /** SHA-256 in hexadecimal of the sent secret of a key, which ends before the key if the key is rotated. */
  key_hash: string | null
}

/**
 * Checks every five seconds, for all streams of this process in one statement, whether their credentials are still
 * valid and permit the operation. Otherwise the connection is closed; the reader reconnects and gets the error
 * (decision D57). While the database does not respond, streams continue.
 */
export function guardStreams(sql: Sql): StreamRights {
  const open = new LiveList<Guarded>()
  let timer: NodeJS.Timeout | undefined

  const check = async (): Promise<void> => {
    const streams = open.values()
    const rights = await findRights(sql, streams).catch(() => undefined)
    if (!rights) return
    for (const stream of streams) if (!isAllowed(stream, rights)) stream.response.destroy()
  }
  const next = (): void => {
    timer ??= setTimeout(() => {
      void check().finally(() => {
        timer = undefined
        if (open.size > 0) next()
      })
    }, check_ms).unref()
  }

  return {
    guard(principal, operation, headers, response) {
      if (response.destroyed) return
      const key = presentedCredential(headers, () => ({}))
      const key_hash = key?.kind === 'api_key' ? hashOf(key.key).toString('hex') : null
      const place = open.add({ response, principal, operation, key_hash })
      response.once('close', () => open.remove(place))
      next()
    },
  }
}

/** The current rights of a credential. */
interface Right {
  role: Role
  /** The current scopes of a key; those of the app of a token; null for a cookie. */
  scopes: string[] | null
}

/** Identifies a credential in the rows of the check. */
type Asked = Pick<Principal, 'kind' | 'credential_id' | 'org_id'> & Pick<Guarded, 'key_hash'>

const nameOf = ({ kind, credential_id, org_id, key_hash }: Asked): string =>
  `${kind} ${credential_id} ${org_id} ${key_hash}`

function isAllowed({ principal, operation, key_hash }: Guarded, rights: Map<string, Right>): boolean {
  const right = rights.get(nameOf({ ...principal, key_hash }))
  if (!right || (operation.administrators && !isAdministrator(right.role))) return false
  return (
    operation.scope === null ||
    (hasScope(scopesNow(principal, right), operation.scope) && roleAllows(right.role, operation.scope))
  )
}

/** A token has no scope that was removed from its app since (decision D81). */
function scopesNow({ kind, scopes }: Principal, right: Right): string[] {
  return kind === 'token' ? scopes.filter((scope) => right.scopes?.includes(scope)) : (right.scopes ?? scopes)
}

/** The rights of those credentials that are still valid, by kind, id, organization and secret. */
async function findRights(sql: Sql, streams: Guarded[]): Promise<Map<string, Right>> {
  // Many streams and waits may have one credential.
  const asked = new Map<string, Asked & Pick<Principal, 'user_id'>>()
  for (const { principal, key_hash } of streams) {
    const { kind, credential_id, org_id, user_id } = principal
    asked.set(nameOf({ kind, credential_id, org_id, key_hash }), { kind, credential_id, org_id, user_id, key_hash })
  }
  const rows = await sql<Right & Asked>`
    select a.kind, a.credential_id, a.org_id, a.key_hash, m.role, coalesce(k.scopes, c.scopes) as scopes
    from jsonb_to_recordset(${jsonb([...asked.values()])}::jsonb)
      as a(kind text, credential_id text, org_id text, user_id text, key_hash text)
    join member m on m.org_id = a.org_id and m.user_id = a.user_id
    join app_user u on u.id = a.user_id and u.disabled_at is null
    left join api_key k on a.kind = 'api_key' and k.id = a.credential_id and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > now())
      and (k.hash = decode(a.key_hash, 'hex')
        or (k.previous_hash = decode(a.key_hash, 'hex') and k.previous_expires_at > now()))
    left join oauth_grant g on a.kind = 'token' and g.id = a.credential_id and g.expires_at > now()
    left join oauth_client c on c.client_id = g.client_id
    left join session s on a.kind = 'session' and s.id = a.credential_id
      and s.expires_at > now() and s.idle_expires_at > now()
    where coalesce(k.id, g.id, s.id) is not null`
  return new Map(rows.map((row) => [nameOf(row), row]))
}
