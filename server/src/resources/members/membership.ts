import { notFound, Problem } from '#contract/core/problems.ts'
import { isAdministrator, type Role } from '#contract/core/scopes.ts'
import type { Config } from '../../config/config.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { insertOrganization, type UserOrganization } from '../users/users.queries.ts'
import { endAccess, type EndedAccess } from './access.queries.ts'
import { revokeInvitationsOf } from './invitations.queries.ts'
import {
  deleteMember,
  findMember,
  findRole,
  hasOtherOrganization,
  hasOtherOwner,
  updateRole,
  type MemberRow,
} from './members.queries.ts'
import { holdOrganization, holdUser } from './organizations.queries.ts'

/** A user in an organization. */
export interface Membership {
  org_id: string
  user_id: string
}

/** A removed membership, and what ended with it. */
export interface EndedMembership extends EndedAccess {
  member: MemberRow
  invitations_revoked: string[]
  /** The new organization that replaces their only one if sign-up is open (decision D62). */
  own: UserOrganization | undefined
}

/**
 * Changes the role of a member on behalf of `by`. If the member loses the right to invite, or to invite owners, their
 * affected pending invitations are revoked. Throws 404 if they are not a member, 403 if `by` has no permission now,
 * 409 for the last owner.
 */
export async function changeRole(
  tx: Sql,
  { org_id, user_id }: Membership,
  role: Role,
  by: string,
): Promise<{ before: MemberRow; after: MemberRow; invitations_revoked: string[] }> {
  await holdOrganization(tx, org_id)
  const before = await requireMember(tx, org_id, user_id)
  await checkRight(tx, org_id, by, [before.role, role])
  if (role !== 'owner') await keepAnOwner(tx, org_id, before)
  await updateRole(tx, org_id, user_id, role)
  const invitations_revoked =
    role === 'owner' ? [] : await revokeInvitationsOf(tx, org_id, user_id, role === 'admin' ? 'of_owners' : 'all')
  return { before, after: { ...before, role }, invitations_revoked }
}

/**
 * Removes a member on behalf of `by`, who may be the member. Throws 404 if they are not a member, 403 if `by` has no
 * permission now, 409 for the last owner, and 409 for a member who would leave their only organization while sign-up
 * is not open. An administrator may remove a member from their only organization. If sign-up needs an invitation, the
 * user then has no organization until they are invited again: a new one would let them invite others and spend on the
 * operator's models, which the removal is meant to end.
 */
export async function endMembership(
  tx: Sql,
  { org_id, user_id }: Membership,
  by: string,
  signup: Config['signup'],
): Promise<EndedMembership> {
  await holdOrganization(tx, org_id)
  const member = await requireMember(tx, org_id, user_id)
  if (by !== user_id) await checkRight(tx, org_id, by, [member.role])
  await keepAnOwner(tx, org_id, member)
  // Two concurrent removals must not both see another organization of the user.
  await holdUser(tx, user_id)
  const isOnly = !(await hasOtherOrganization(tx, org_id, user_id))
  if (isOnly && signup !== 'open' && by === user_id) throw onlyOrganization(org_id)

  await deleteMember(tx, org_id, user_id)
  const access = await endAccess(tx, org_id, user_id)
  const invitations_revoked = await revokeInvitationsOf(tx, org_id, user_id, 'all')
  const own =
    isOnly && signup === 'open' ? await insertOrganization(tx, `${member.name}'s organization`, user_id) : undefined
  return { member, ...access, invitations_revoked, own }
}

async function requireMember(tx: Sql, org_id: string, user_id: string): Promise<MemberRow> {
  const member = await findMember(tx, org_id, user_id)
  if (!member) throw notFound('member_not_found', 'member', user_id)
  return member
}

/**
 * Throws 403 unless `by` may manage these roles; only owners may manage owners. Checked under the lock, because `by`
 * may have lost the role in the meantime.
 */
async function checkRight(tx: Sql, org_id: string, by: string, concerned: Role[]): Promise<void> {
  const role = await findRole(tx, org_id, by)
  if (role === 'owner' || (role && isAdministrator(role) && !concerned.includes('owner'))) return
  throw new Problem('insufficient_permissions', undefined, {
    message: role === 'admin' ? 'Only owners may add, change or remove owners.' : 'Only owners and admins may do this.',
  })
}

async function keepAnOwner(tx: Sql, org_id: string, member: MemberRow): Promise<void> {
  if (member.role !== 'owner' || (await hasOtherOwner(tx, org_id, member.user_id))) return
  throw new Problem(
    'resource_conflict',
    { resource_type: 'member', conflicting_field: 'role', conflicting_value: 'owner' },
    { message: 'An organization needs an owner. Make another member an owner first.' },
  )
}

function onlyOrganization(org_id: string): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'organization', conflicting_field: 'id', conflicting_value: org_id },
    { message: 'You cannot leave your only organization. An administrator can remove you.' },
  )
}
