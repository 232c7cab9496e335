import { jsonb, type Sql } from '../platform/database.ts'
import { newId } from '../platform/ids.ts'

/** Something that was done to access: who did what to which thing. */
export interface AuditEntry {
  /** The organization that it concerns; null where it concerns none. */
  org_id: string | null
  /** A user's or an OAuth client's identifier; null where nobody is known. */
  actor: string | null
  /** `noun.verbed`. */
  action: string
  target: string
  request_id: string
  /** What the members above do not say; holds no secret. */
  detail?: Record<string, unknown>
}

/** Writes into the audit log, in the transaction that makes it true. */
export async function recordAudit(tx: Sql, entry: AuditEntry): Promise<void> {
  await tx`
    insert into audit (id, org_id, actor, action, target, request_id, detail)
    values (${newId('aud')}, ${entry.org_id}, ${entry.actor}, ${entry.action}, ${entry.target}, ${entry.request_id},
      ${jsonb(entry.detail ?? {})})`
}
