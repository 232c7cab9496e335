import type { Doer } from '#contract/audit.ts'
import { recordAudit } from '../../events/audit.ts'
import type { Sql } from '../../platform/database.ts'
import type { EndedMembership } from './membership.ts'

/** Writes down that somebody left an organization or was removed from it, with all that went with it. */
export async function recordEnd(tx: Sql, doer: Doer, ended: EndedMembership): Promise<void> {
  const { member, own, ...gone } = ended
  await recordAudit(tx, doer, {
    action: doer.actor === member.user_id ? 'member.left' : 'member.removed',
    target: member.user_id,
    before: { role: member.role },
    detail: { ...gone },
  })
  if (own) {
    await recordAudit(
      tx,
      { ...doer, org_id: own.id },
      { action: 'organization.created', target: own.id, after: { name: own.name }, detail: { owner: member.user_id } },
    )
  }
}
