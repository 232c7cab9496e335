import type { ServerResponse } from 'node:http'
import type { Operation } from '#contract/core/operation.ts'
import { hasScope, roleAllows, type Role } from '#contract/core/scopes.ts'
import { LiveList } from '../../platform/memory/live-list.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import type { Principal } from './principal.ts'

/** Interval of the checks: the longest time that a stream continues after its reader lost the right to it. */
const check_ms = 5000

/**
 * Ends streams whose readers have lost the right to read them, because a stream is one request and may last for days.
 */
export interface StreamRights {
  /** Guards a response until its connection closes. */
  guard(principal: Principal, operation: Pick<Operation, 'scope'>, response: ServerResponse): void
}

interface Guarded {
  response: ServerResponse
  principal: Principal
  operation: Pick<Operation, 'scope'>
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
    // A waiting request without any response yet gets one within a minute.
    const streams = open.values().filter(({ response }) => response.headersSent)
    const rights = await findRights(
      sql,
      streams.map(({ principal }) => principal),
    ).catch(() => undefined)
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
    guard(principal, operation, response) {
      if (response.destroyed) return
      const place = open.add({ response, principal, operation })
      response.once('close', () => open.remove(place))
      next()
    },
  }
}

/** The current rights of a credential. */
interface Right {
  role: Role
  /** Of a key, whose scopes may change; null for other credentials, whose scopes do not change. */
  scopes: string[] | null
}

const nameOf = ({ kind, credential_id, org_id }: Pick<Principal, 'kind' | 'credential_id' | 'org_id'>): string =>
  `${kind} ${credential_id} ${org_id}`

function isAllowed({ principal, operation: { scope } }: Guarded, rights: Map<string, Right>): boolean {
  const right = rights.get(nameOf(principal))
  return (
    right !== undefined &&
    (scope === null || (hasScope(right.scopes ?? principal.scopes, scope) && roleAllows(right.role, scope)))
  )
}

/** The rights of those credentials that are still valid, by kind, id and organization. */
async function findRights(sql: Sql, principals: Principal[]): Promise<Map<string, Right>> {
  const asked = principals.map(({ kind, credential_id, org_id, user_id }) => ({ kind, credential_id, org_id, user_id }))
  const rows = await sql<Right & Pick<Principal, 'kind' | 'credential_id' | 'org_id'>>`
    select distinct a.kind, a.credential_id, a.org_id, m.role, k.scopes
    from jsonb_to_recordset(${jsonb(asked)}::jsonb) as a(kind text, credential_id text, org_id text, user_id text)
    join member m on m.org_id = a.org_id and m.user_id = a.user_id
    join app_user u on u.id = a.user_id and u.disabled_at is null
    left join api_key k on a.kind = 'api_key' and k.id = a.credential_id and k.revoked_at is null
      and (k.expires_at is null or k.expires_at > now())
    left join oauth_grant g on a.kind = 'token' and g.id = a.credential_id and g.expires_at > now()
    left join session s on a.kind = 'session' and s.id = a.credential_id
      and s.expires_at > now() and s.idle_expires_at > now()
    where coalesce(k.id, g.id, s.id) is not null`
  return new Map(rows.map((row) => [nameOf(row), row]))
}
