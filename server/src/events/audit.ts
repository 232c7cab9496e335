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

/** Nobody who could be named: the service acts by itself, or its operator on the command line. */
export function nobody(org_id: string | null): Doer {
  return { org_id, actor: null, credential: null, ip: null, user_agent: null, request_id: null }
}

/**
 * Writes an entry into the audit log, in the transaction that makes it true. `doer` is what a handler is given
 * (`Loading`), or `doerOf(request)` where somebody is only about to be known.
 *
 * What concerns a person rather than an organization, where `doer` has none, is written for each organization that the
 * person is a member of at this moment.
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
  const organizations = doer.org_id === null ? await organizationsOf(tx, doer, target) : [doer.org_id]
  await tx`
    insert into audit (id, org_id, actor, action, target, request_id, credential_kind, credential_id, ip, user_agent,
      before, after, detail)
    select id, org_id, ${doer.actor}, ${action}, ${target}, ${doer.request_id}, ${doer.credential?.kind ?? null},
      ${doer.credential?.id ?? null}, ${doer.ip}, ${doer.user_agent}, ${part(changed?.before)}::jsonb,
      ${part(changed?.after)}::jsonb, ${part({ ...place, ...detail })}::jsonb
    from unnest(${organizations.map(() => newId('aud'))}::text[], ${organizations}::text[]) as e(id, org_id)`
}

/** Whose entry it is that belongs to none: of each organization of the user that it is about, or of nobody but the operator. */
async function organizationsOf(tx: Sql, { actor }: Doer, target: string | null): Promise<(string | null)[]> {
  const user_id = target !== null && isId('user', target) ? target : actor
  // Asked for nobody too, so that an answer about an unknown address takes as long.
  const rows = await tx<{ org_id: string }>`select org_id from member where user_id = ${user_id} order by org_id`
  return rows.length > 0 ? rows.map(({ org_id }) => org_id) : [null]
}
