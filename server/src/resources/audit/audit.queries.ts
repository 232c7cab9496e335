import type { AuditAction } from '#contract/accounts/audit.ts'
import type { CredentialKind } from '#contract/core/operation.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** A stored entry with the current name of its actor. */
interface AuditRow {
  id: string
  at: string
  actor: string | null
  actor_name: string | null
  action: AuditAction
  target: string | null
  credential_kind: CredentialKind | null
  credential_id: string | null
  ip: string | null
  user_agent: string | null
  request_id: string | null
  before: Record<string, unknown> | null
  after: Record<string, unknown> | null
  detail: Record<string, unknown>
}

/** Filters of an organization's entries. */
export interface AuditFilter {
  org_id: string
  actor?: string | undefined
  /** A whole action, or its prefix up to the dot: `agent.`. */
  action?: string | undefined
  target?: string | undefined
  credential_id?: string | undefined
  request_id?: string | undefined
  ip?: string | undefined
  /** Inclusive. */
  start_time?: string | undefined
  /** Exclusive. */
  end_time?: string | undefined
}

/** Maximum difference between the clocks that create an entry's id and its time. */
const clockDifference = '1 day'
/** No entry is older. Ids of earlier times would not sort correctly. */
const earliest = '2020-01-01T00:00:00.000Z'

/** SQL condition on an entry `a`; always includes the organization. */
function conditions({ fragment }: Sql, filter: AuditFilter): Fragment {
  const { org_id, actor, action, target, credential_id, request_id, ip, start_time, end_time } = filter
  const all = [fragment`a.org_id = ${org_id}`]
  if (actor !== undefined) all.push(fragment`a.actor = ${actor}`)
  if (action?.endsWith('.')) all.push(fragment`starts_with(a.action, ${action})`)
  else if (action !== undefined) all.push(fragment`a.action = ${action}`)
  if (target !== undefined) all.push(fragment`a.target = ${target}`)
  if (credential_id !== undefined) all.push(fragment`a.credential_id = ${credential_id}`)
  if (request_id !== undefined) all.push(fragment`a.request_id = ${request_id}`)
  if (ip !== undefined) all.push(fragment`a.ip = ${ip}`)
  // `at` is exact. The condition on the id, which the indexes are sorted by, limits what is read.
  if (start_time !== undefined) {
    all.push(fragment`a.at >= ${start_time}`)
    all.push(
      fragment`a.id >= id_floor('aud', greatest(${start_time}::timestamptz - ${clockDifference}::interval, ${earliest}))`,
    )
  }
  if (end_time !== undefined) {
    all.push(fragment`a.at < ${end_time}`)
    all.push(
      fragment`a.id < id_floor('aud', greatest(${end_time}::timestamptz + ${clockDifference}::interval, ${earliest}))`,
    )
  }
  return all.reduce((some, one) => fragment`${some} and ${one}`)
}

/** Entries with the current names of their actors; `rest` has order and limit. */
function select({ fragment }: Sql, where: Fragment, rest: Fragment): Fragment {
  return fragment`
    select a.id, a.at, a.actor, coalesce(u.name, c.name) as actor_name, a.action, a.target, a.credential_kind, a.credential_id,
      a.ip, a.user_agent, a.request_id, a.before, a.after, a.detail
    from audit a left join app_user u on u.id = a.actor left join oauth_client c on c.client_id = a.actor
    where ${where} ${rest}`
}

/** A page of an organization's entries, newest first, and their total number. */
export async function listAuditEntries(
  sql: Sql,
  filter: AuditFilter,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ entries: ReturnType<typeof auditView>[]; total: number }> {
  const { fragment } = sql
  const where = conditions(sql, filter)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from audit a where ${where}`)
  const rest = fragment`order by a.id desc limit ${limit} offset ${offset}`
  const rows = await sql.run<AuditRow>(select(sql, where, rest))
  return { entries: rows.map(auditView), total: count?.total ?? 0 }
}

/** The next entries of an organization after one id and up to another, oldest first. */
export async function listAuditEntriesAfter(
  sql: Sql,
  filter: AuditFilter,
  { after, last, limit }: { after: string; last: string; limit: number },
): Promise<ReturnType<typeof auditView>[]> {
  const { fragment } = sql
  const where = fragment`${conditions(sql, filter)} and a.id > ${after} and a.id <= ${last}`
  const rows = await sql.run<AuditRow>(select(sql, where, fragment`order by a.id limit ${limit}`))
  return rows.map(auditView)
}

/** An entry in a response. */
function auditView({ actor, actor_name, credential_kind: kind, credential_id, ...row }: AuditRow) {
  return {
    id: row.id,
    at: row.at,
    actor: actor === null ? null : { id: actor, ...(actor_name === null ? {} : { name: actor_name }) },
    action: row.action,
    target: row.target,
    credential: kind === null || credential_id === null ? null : { kind, id: credential_id },
    ip: row.ip,
    user_agent: row.user_agent,
    request_id: row.request_id,
    before: row.before,
    after: row.after,
    detail: row.detail,
  }
}
