import type { Sql } from '../../platform/postgres/database.ts'
import { revokeApiKeysOf } from '../api-keys/api-keys.queries.ts'
import { endGrantsOfMember, forgetConsentsOf } from '../oauth/oauth.queries.ts'

/** What a user could get into an organization with, and now cannot: identifiers. */
export interface EndedAccess {
  api_keys_revoked: string[]
  oauth_grants_ended: string[]
}

/**
 * Ends everything that lets a user into an organization beside their membership, for good: their API keys there, what
 * they allowed apps there, and that those were not asked again. Without the membership none of it works; this is why it
 * does not work again should they come back.
 */
export async function endAccess(tx: Sql, org_id: string, user_id: string): Promise<EndedAccess> {
  const api_keys_revoked = await revokeApiKeysOf(tx, { org_id, user_id })
  const grants = await endGrantsOfMember(tx, user_id, org_id)
  await forgetConsentsOf(tx, user_id, org_id)
  return { api_keys_revoked, oauth_grants_ended: grants.map(({ id }) => id) }
}
