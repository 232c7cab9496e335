import type { Actor } from '#contract/accounts/audit.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { EndedMembership } from './membership.ts'

/** Records that a member left an organization or was removed, with everything that ended with it. */
export async function recordEnd(tx: Sql, actor: Actor, ended: EndedMembership): Promise<void> {
  const { member, own, ...rest } = ended
  await recordAudit(tx, actor, {
    action: actor.actor === member.user_id ? 'member.left' : 'member.removed',
    target: member.user_id,
    before: { role: member.role },
    detail: { ...rest },
  })
  if (own) {
    // The entry in the user's new organization does not name the organization that removed them.
    const isOther = actor.actor !== member.user_id
    const unknownActor = { actor: null, credential: null, ip: null, user_agent: null }
    await recordAudit(
      tx,
      { ...actor, ...(isOther ? unknownActor : {}), org_id: own.id },
      { action: 'organization.created', target: own.id, after: { name: own.name }, detail: { owner: member.user_id } },
    )
  }
}
