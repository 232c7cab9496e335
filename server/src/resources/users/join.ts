import type { Actor } from '#contract/accounts/audit.ts'
import { Problem } from '#contract/core/problems.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { endAccess } from '../members/access.queries.ts'
import { acceptInvitation, findOffer, type JoinedRow, type Offer } from '../members/invitations.queries.ts'

/**
 * Makes a user a member by the link with this token, once. Throws 404 for a link that does not work, whatever the
 * reason; 403 for an invitation of another account; 409 for a member, who keeps their role; the link can still be used.
 */
export async function join(
  tx: Sql,
  token: string,
  user_id: string,
  actor: Actor,
): Promise<Omit<JoinedRow, 'invitation_id'>> {
  const joined = await acceptInvitation(tx, token, user_id)
  if (joined === 'member') throw alreadyMember(user_id)
  if (!joined) throw (await findOffer(tx, token)) ? forAnother() : invitationGone()
  const { invitation_id, ...organization } = joined
  // A request that ran while the user was removed earlier may have created a key since.
  await endAccess(tx, organization.id, user_id)
  await recordAudit(
    tx,
    { ...actor, org_id: organization.id },
    { action: 'invitation.accepted', target: invitation_id, after: { user_id, role: organization.role } },
  )
  return organization
}

/** The offer of the link with this token; throws 404 if the link does not work. */
export async function requireOffer(sql: Sql, token: string): Promise<Offer> {
  const offer = await findOffer(sql, token)
  if (!offer) throw invitationGone()
  return offer
}

/** Throws 404 if the link does not work, and 403 if it is not for the account with this address. */
export async function requireOfferTo(sql: Sql, token: string, address: string): Promise<void> {
  if (!isFor(await requireOffer(sql, token), address)) throw forAnother()
}

/** Whether an offer is for the account with this address. */
export function isFor({ email }: Pick<Offer, 'email'>, address: string): boolean {
  return email === null || email.toLowerCase() === address.toLowerCase()
}

/** The same error for every link that does not work, without any part of the link. */
function invitationGone(): Problem {
  return new Problem('invitation_not_found', { resource_type: 'invitation' })
}

function forAnother(): Problem {
  return new Problem('insufficient_permissions', undefined, {
    message: 'The invitation is for another e-mail address than that of your account.',
  })
}

function alreadyMember(user_id: string): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'member', conflicting_field: 'user_id', conflicting_value: user_id },
    { message: 'You are already a member of this organization.' },
  )
}
