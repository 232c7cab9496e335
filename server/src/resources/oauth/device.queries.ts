import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'

/** A device that waits for consent, by the code that it shows (RFC 8628). */
export interface WaitingDevice {
  client_id: string
  scopes: string[]
  /** The resource that it asked a token for; null for the API. */
  resource: string | null
  /** Where it asked from. */
  ip: string
  user_agent: string
}

/** What the authorization server keeps of one. */
interface Stored {
  clientId: string
  params: { scope: string; resource?: string | string[] }
  deviceInfo: { ip: string; ua: string }
}

/** What a person types, as it is kept: capital letters without what only helps to read them. */
export function normalizedUserCode(typed: string): string {
  return typed.toUpperCase().replaceAll(/[^A-Z]/g, '')
}

/** Undefined where no device shows this code, and where it was decided about or has expired. */
export async function findWaitingDevice(sql: Sql, user_code: string): Promise<WaitingDevice | undefined> {
  const [row] = await sql.run<{ payload: Stored }>(
    sql.fragment`select payload from oauth_artifact where ${isWaiting(sql, user_code)}`,
  )
  if (!row) return undefined
  const { clientId, params, deviceInfo } = row.payload
  return {
    client_id: clientId,
    scopes: [...new Set(params.scope.split(' '))],
    resource: [params.resource ?? []].flat()[0] ?? null,
    ip: deviceInfo.ip,
    user_agent: deviceInfo.ua,
  }
}

/** What was decided about a device, as the authorization server reads it when the device asks next. */
export type DeviceDecision = { grant_id: string; user_id: string; scopes: string[]; resource: string | null } | 'denied'

/** Decides about a device, once; tells whether it still waited. */
export async function decideDevice(tx: Sql, user_code: string, decision: DeviceDecision): Promise<boolean> {
  const grant_id = decision === 'denied' ? null : decision.grant_id
  const change =
    decision === 'denied'
      ? { error: 'access_denied', errorDescription: 'the user did not allow it' }
      : {
          ...{ accountId: decision.user_id, grantId: decision.grant_id, scope: decision.scopes.join(' ') },
          ...(decision.resource !== null && { resource: decision.resource }),
        }
  const decided = await tx.run(tx.fragment`
    update oauth_artifact set payload = payload || ${jsonb(change)}::jsonb, grant_id = ${grant_id}
    where ${isWaiting(tx, user_code)} returning kind`)
  return decided.length > 0
}

/** Leans on the index of what devices show. */
function isWaiting(sql: Sql, user_code: string): Fragment {
  return sql.fragment`kind = 'DeviceCode' and payload->>'userCode' = ${user_code} and expires_at > now()
    and payload->>'accountId' is null and payload->>'error' is null`
}
