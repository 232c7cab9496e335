import type { AuditAction, Actor } from '#contract/accounts/audit.ts'
import { projectId } from '#contract/core/project-id.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
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
  const rows: AuditRow[] = []
  for (const { actor, entry } of done) {
    const content = contentOf(actor, entry)
    if (!content) continue
    const organizations = actor.org_id === null ? await organizationsOf(tx, actor, entry.target) : [actor.org_id]
    rows.push(...organizations.map((org_id) => ({ ...content, id: newId('aud'), org_id })))
  }
  if (rows.length > 0) await tx.run(insertAudits(tx, rows))
}

/** An entry as it is stored, for statements that write more than the audit log. */
export type AuditRow = Record<string, unknown>

/** The entry of an actor of an organization. */
export function auditRow(actor: Actor & { org_id: string }, entry: AuditEntry): AuditRow {
  return { ...contentOf(actor, entry), id: newId('aud'), org_id: actor.org_id }
}

/**
 * The insert of entries, as part of a statement of their transaction, where `condition` is true of one, as `e`; `after` is what that
 * was made.
 */
export function insertAudits(
  { fragment }: Sql,
  rows: readonly AuditRow[],
  { condition = fragment`true`, after = fragment`e.after` }: { condition?: Fragment; after?: Fragment } = {},
): Fragment {
  return fragment`
    insert into audit (id, org_id, actor, action, target, request_id, credential_kind, credential_id, ip, user_agent,
      before, after, detail)
    select id, org_id, actor, action, target, request_id, credential_kind, credential_id, ip, user_agent, before, ${after}, detail
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) as e(id text, org_id text, actor text, action text, target text,
      request_id text, credential_kind text, credential_id text, ip text, user_agent text, before jsonb, after jsonb, detail jsonb)
    where ${condition}`
}

/** Of an entry all but its organization; undefined where there is nothing to write. */
function contentOf(by: Actor, { action, target, project_id, detail, ...states }: AuditEntry): AuditRow | undefined {
  const changed = changes(states.before, states.after)
  if (!changed && detail === undefined) return undefined
  const place = project_id === undefined ? {} : { project_id: projectId(project_id) }
  const { actor, request_id, credential, ip, user_agent } = by
  return {
    ...{ actor, action, target, request_id, ip, user_agent },
    credential_kind: credential?.kind,
    credential_id: credential?.id,
    before: part(changed?.before),
    after: part(changed?.after),
    detail: part({ ...place, ...detail }),
  }
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
