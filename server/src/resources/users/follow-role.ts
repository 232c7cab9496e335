import type { Role } from '#contract/core/scopes.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { revokeInvitationsOf } from '../members/invitations.queries.ts'
import { findMember, updateRole, type MemberRow } from '../members/members.queries.ts'
import { holdOrganization } from '../members/organizations.queries.ts'

/**
 * Gives a member the role that an identity provider states. Owners keep their role, and users who are not members stay
 * so. Undefined if nothing changed.
 */
export async function followRole(
  tx: Sql,
  { org_id, user_id }: { org_id: string; user_id: string },
  role: Exclude<Role, 'owner'>,
): Promise<{ before: MemberRow; after: MemberRow; invitations_revoked: string[] } | undefined> {
  await holdOrganization(tx, org_id)
  const before = await findMember(tx, org_id, user_id)
  if (!before || before.role === 'owner' || before.role === role) return undefined
  await updateRole(tx, org_id, user_id, role)
  const invitations_revoked = role === 'admin' ? [] : await revokeInvitationsOf(tx, org_id, user_id, 'all')
  return { before, after: { ...before, role }, invitations_revoked }
}
