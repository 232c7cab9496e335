import type { Actor } from '#contract/accounts/audit.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { EndedMembership } from './membership.ts'

/** Writes down that somebody left an organization or was removed from it, with all that went with it. */
export async function recordEnd(tx: Sql, actor: Actor, ended: EndedMembership): Promise<void> {
  const { member, own, ...gone } = ended
  await recordAudit(tx, actor, {
    action: actor.actor === member.user_id ? 'member.left' : 'member.removed',
    target: member.user_id,
    before: { role: member.role },
    detail: { ...gone },
  })
  if (own) {
    // From where somebody was removed is not theirs to know, only that they have an organization since.
    const isOther = actor.actor !== member.user_id
    const nobody = { actor: null, credential: null, ip: null, user_agent: null }
    await recordAudit(
      tx,
      { ...actor, ...(isOther ? nobody : {}), org_id: own.id },
      { action: 'organization.created', target: own.id, after: { name: own.name }, detail: { owner: member.user_id } },
    )
  }
}
