import type { AuditAction, Doer } from '#contract/audit.ts'
import { projectId } from '#contract/project-id.ts'
import { jsonb, type Sql } from '../platform/database.ts'
import { isId, newId } from '../platform/ids.ts'
import { bounded, changes, withoutSecrets } from './audit-content.ts'

/** Something that was done. */
export interface AuditEntry {
  action: AuditAction
  /** The identifier of what it was done to; null where that is not known. */
  target: string | null
  /** Where the target belongs to a project, its number; read in `detail`. */
  project_id?: number | undefined
  /** What the target was, in the form in which the API answers it; absent of what is new. */
  before?: object | undefined
  /** What the target is now; absent of what is gone. */
  after?: object | undefined
  /** What the members above do not say. */
  detail?: Record<string, unknown> | undefined
}

/**
 * Writes an entry into the audit log, in the transaction that makes it true. `doer` is what a handler is given
 * (`Loading`), or `doerOf(request)` where somebody is only about to be known.
 *
 * Of `before` and `after` only members are kept that differ; where both are given, none differs and there is no
 * `detail`, nothing was done and nothing is written. No entry holds a secret: values of environment variables and
 * members named like secrets are replaced, and what looks like one in a text. Each part is cut to 16 KiB.
 */
export async function recordAudit(tx: Sql, doer: Doer, entry: AuditEntry): Promise<void> {
  const { action, target, project_id, detail } = entry
  const changed = changes(entry.before, entry.after)
  if (!changed && detail === undefined) return
  const part = (value: unknown): string | null => (value === undefined ? null : jsonb(bounded(withoutSecrets(value))))
  const place = project_id === undefined ? {} : { project_id: projectId(project_id) }
  await tx`
    insert into audit (id, org_id, user_id, actor, action, target, request_id, credential_kind, credential_id, ip,
      user_agent, before, after, detail)
    values (${newId('aud')}, ${doer.org_id}, ${concerned(doer, target)}, ${doer.actor}, ${action}, ${target},
      ${doer.request_id}, ${doer.credential?.kind ?? null}, ${doer.credential?.id ?? null}, ${doer.ip},
      ${doer.user_agent}, ${part(changed?.before)}, ${part(changed?.after)}, ${part({ ...place, ...detail })})`
}

/** The user that an entry without an organization is about: administrators of the user's organizations may read it. */
function concerned({ org_id, actor }: Doer, target: string | null): string | null {
  if (org_id !== null) return null
  return target !== null && isId('user', target) ? target : actor
}
