import type { AuditAction, Actor } from '#contract/accounts/audit.ts'
import { projectId } from '#contract/core/project-id.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import { isId, newId } from '../../platform/ids.ts'
import { bounded, changes, withoutSecrets } from './audit-content.ts'

/** An action for the audit log. */
export interface AuditEntry {
  action: AuditAction
  /** The id of the target; null if it is unknown. */
  target: string | null
  /** The number of the target's project; stored in `detail`. */
  project_id?: number | undefined
  /** The target before the action, in the form of the API's response; left out for a new target. */
  before?: object | undefined
  /** The target after the action; left out for a deleted target. */
  after?: object | undefined
  /** Facts beyond the members above. */
  detail?: Record<string, unknown> | undefined
}

/** The actor for actions of the service itself, or of its operator on the command line. */
export function systemActor(org_id: string | null): Actor {
  return { org_id, actor: null, credential: null, ip: null, user_agent: null, request_id: null }
}

/**
 * Writes an entry into the audit log, in the transaction of the action. `actor` is that of the request handler, or
 * `actorOf(request)` before authentication.
 *
 * An action on a person, whose `actor` has no organization, is written for each organization that the person is a
 * member of now.
 *
 * Only members that differ between `before` and `after` are stored. If both are given and equal, and there is no
 * `detail`, nothing is written. No entry has a secret: values of environment variables, members named like secrets, and
 * texts in the form of one are replaced. Each part is cut to 16 KiB.
 */
export async function recordAudit(tx: Sql, actor: Actor, entry: AuditEntry): Promise<void> {
  await recordAudits(tx, [{ actor, entry }])
}

/** Writes several entries into the audit log in one statement, like `recordAudit`. */
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

/** An entry as stored, for statements that write more than the audit log. */
export type AuditRow = Record<string, unknown>

/** The entry for an actor with an organization. */
export function auditRow(actor: Actor & { org_id: string }, entry: AuditEntry): AuditRow {
  return { ...contentOf(actor, entry), id: newId('aud'), org_id: actor.org_id }
}

/**
 * The insert of entries, as part of a caller's statement. Entries for which `condition` is false are left out; it may
 * refer to the entry as `e`. `after` is the expression for that column.
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

/** All members of an entry except its organization; undefined if there is nothing to write. */
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

/** The organizations of an entry without one: all organizations of its user, or null, which only the operator sees. */
async function organizationsOf(tx: Sql, { actor }: Actor, target: string | null): Promise<(string | null)[]> {
  const user_id = target !== null && isId('user', target) ? target : actor
  // Queried without a user too, so that the response to an unknown address takes as long.
  const rows = await tx<{ org_id: string }>`select org_id from member where user_id = ${user_id} order by org_id`
  return rows.length > 0 ? rows.map(({ org_id }) => org_id) : [null]
}
