import type { AuditAction, Actor } from '#contract/accounts/audit.ts'
import { projectId } from '#contract/core/project-id.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId, newId } from '../../platform/ids.ts'
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

/** No known actor: the service itself, or its operator on the command line. */
export function systemActor(org_id: string | null): Actor {
  return { org_id, actor: null, credential: null, ip: null, user_agent: null, request_id: null }
}

/**
 * Writes an entry into the audit log, in the transaction of the action. `actor` is the handler's (`Loading`), or
 * `actorOf(request)` before the caller is authenticated.
 * An action on a person rather than an organization, where `actor` has none, is written for each organization that the
 * person is a member of now.
 * Of `before` and `after` only members that differ are stored. Where both are given, none differs and there is no
 * `detail`, nothing is written. No entry holds a secret: values of environment variables, members named like secrets,
 * and texts that look like one are replaced. Each part is cut to 16 KiB.
 */
export async function recordAudit(tx: Sql, actor: Actor, entry: AuditEntry): Promise<void> {
  await recordAudits(tx, [{ actor, entry }])
}

/** Writes several entries into the audit log in one statement; otherwise as `recordAudit`. */
export async function recordAudits(tx: Sql, done: readonly { actor: Actor; entry: AuditEntry }[]): Promise<void> {
  const rows: object[] = []
  for (const { actor: by, entry } of done) {
    const { action, target, project_id, detail } = entry
    const changed = changes(entry.before, entry.after)
    if (!changed && detail === undefined) continue
    const place = project_id === undefined ? {} : { project_id: projectId(project_id) }
    const { actor, request_id, credential, ip, user_agent } = by
    const row = {
      ...{ actor, action, target, request_id, ip, user_agent },
      credential_kind: credential?.kind,
      credential_id: credential?.id,
      before: part(changed?.before),
      after: part(changed?.after),
      detail: part({ ...place, ...detail }),
    }
    const organizations = by.org_id === null ? await organizationsOf(tx, by, target) : [by.org_id]
    rows.push(...organizations.map((org_id) => ({ ...row, id: newId('aud'), org_id })))
  }
  if (rows.length === 0) return
  await tx`
    insert into audit (id, org_id, actor, action, target, request_id, credential_kind, credential_id, ip, user_agent,
      before, after, detail)
    select id, org_id, actor, action, target, request_id, credential_kind, credential_id, ip, user_agent, before, after, detail
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) as e(id text, org_id text, actor text, action text, target text,
      request_id text, credential_kind text, credential_id text, ip text, user_agent text, before jsonb, after jsonb, detail jsonb)`
}

function part(value: unknown): unknown {
  return value === undefined ? undefined : bounded(withoutSecrets(value))
}

/** Organizations of an entry without one: each organization of its user, or none, visible to the operator only. */
async function organizationsOf(tx: Sql, { actor }: Actor, target: string | null): Promise<(string | null)[]> {
  const user_id = target !== null && isId('user', target) ? target : actor
  // Also queried without a user, so that an unknown address takes as long to answer.
  const rows = await tx<{ org_id: string }>`select org_id from member where user_id = ${user_id} order by org_id`
  return rows.length > 0 ? rows.map(({ org_id }) => org_id) : [null]
}
