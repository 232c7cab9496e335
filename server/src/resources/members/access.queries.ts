import type { Sql } from '../../platform/postgres/database.ts'
import { revokeApiKeysOf } from '../api-keys/api-keys.queries.ts'
import { endGrantsOfMember, forgetConsentsOf } from '../oauth/oauth.queries.ts'

/** Ids of the ended credentials of a user in an organization. */
export interface EndedAccess {
  api_keys_revoked: string[]
  oauth_grants_ended: string[]
}

/**
 * Permanently ends a user's API keys, OAuth grants and remembered consents in an organization. Without the membership
 * they do not work anyway; this prevents that they work again if the user returns.
 */
export async function endAccess(tx: Sql, org_id: string, user_id: string): Promise<EndedAccess> {
  const api_keys_revoked = await revokeApiKeysOf(tx, { org_id, user_id })
  const grants = await endGrantsOfMember(tx, user_id, org_id)
  await forgetConsentsOf(tx, user_id, org_id)
  return { api_keys_revoked, oauth_grants_ended: grants.map(({ id }) => id) }
}
