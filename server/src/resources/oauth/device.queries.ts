import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'

/** A device that waits for consent, by the code that it shows (RFC 8628). */
export interface WaitingDevice {
  client_id: string
  scopes: string[]
  /** The resource of the requested token; null for the API. */
  resource: string | null
  /** IP address of the request. */
  ip: string
  user_agent: string
}

/** The stored artifact of a device code. */
interface Stored {
  clientId: string
  params: { scope: string; resource?: string | string[] }
  deviceInfo: { ip: string; ua: string }
}

/** Normalizes a typed code: capital letters without separators. */
export function normalizedUserCode(typed: string): string {
  return typed.toUpperCase().replaceAll(/[^A-Z]/g, '')
}

/** The device with this code; undefined if the code is unknown, was decided, or has expired. */
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

/** The decision on a device, which the authorization server reads when the device polls next. */
export type DeviceDecision = { grant_id: string; user_id: string; scopes: string[]; resource: string | null } | 'denied'

/** Stores the decision on a device. Returns false if it was decided already. */
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

/** SQL condition on a waiting device; uses the index of user codes. */
function isWaiting(sql: Sql, user_code: string): Fragment {
  return sql.fragment`kind = 'DeviceCode' and payload->>'userCode' = ${user_code} and expires_at > now()
    and payload->>'accountId' is null and payload->>'error' is null`
}
