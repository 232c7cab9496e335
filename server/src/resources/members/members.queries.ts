import type { Role } from '#contract/core/scopes.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** A member of an organization as responses show them; the e-mail address and last activity only to some callers. */
export interface MemberRow {
  user_id: string
  name: string
  email: string
  avatar_url: string
  role: Role
  joined_at: string
  /** Null if the member never signed in and used no key or app here. */
  last_active: string | null
}

/**
 * Last activity of each member: open sessions, apps and keys in this organization, and the audit log, which remains
 * when those are gone. Each part uses an index; usage of a key is found by its newest hour. The column of actors has
 * its own collation, without which its index would not be used.
 */
const columns = (sql: Sql) => sql.fragment`
  m.user_id, u.name, u.email, u.avatar_url, m.role, m.joined_at, greatest(
    (select max(s.last_activity) from session s where s.user_id = m.user_id),
    (select max(g.last_activity) from oauth_grant g where g.user_id = m.user_id and g.org_id = m.org_id),
    (select max(w.last_at) from api_key k
      cross join lateral (select last_at from api_key_usage where key_id = k.id order by hour desc limit 1) w
      where k.user_id = m.user_id and k.org_id = m.org_id and k.revoked_at is null),
    (select a.at from audit a where a.org_id = m.org_id and a.actor = m.user_id collate "default"
      and a.action <> 'user.sign_in_failed' order by a.id desc limit 1)) as last_active
  from member m join app_user u on u.id = m.user_id`

/** Validated filters of a list of members. */
export interface MemberFilter {
  org_id: string
  search?: string | undefined
  /** Whether to search e-mail addresses too. Only for callers who may see them. */
  by_email: boolean
  role?: Role | undefined
  limit: number
  offset: number
}

/** A page of members in the order of joining, and their total number. */
export async function listMembers(sql: Sql, filter: MemberFilter): Promise<{ members: MemberRow[]; total: number }> {
  const pattern = filter.search === undefined ? null : likePattern(filter.search)
  const where = sql.fragment`
    m.org_id = ${filter.org_id} and (${filter.role ?? null}::text is null or m.role = ${filter.role ?? null})
    and (${pattern}::text is null or u.name ilike ${pattern} escape '\\'
      or (${filter.by_email} and u.email ilike ${pattern} escape '\\'))`
  const [count] = await sql.run<{ total: number }>(sql.fragment`
    select count(*) as total from member m join app_user u on u.id = m.user_id where ${where}`)
  const members = await sql.run<MemberRow>(sql.fragment`
    select ${columns(sql)} where ${where}
    order by m.joined_at, m.user_id limit ${filter.limit} offset ${filter.offset}`)
  return { members, total: count?.total ?? 0 }
}

/** Escapes `%` and `_` of a search text (decision D32). */
function likePattern(search: string): string {
  return `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`
}

export async function findMember(sql: Sql, org_id: string, user_id: string): Promise<MemberRow | undefined> {
  const [row] = await sql.run<MemberRow>(sql.fragment`
    select ${columns(sql)} where m.org_id = ${org_id} and m.user_id = ${user_id}`)
  return row
}

/** The current role of a user in an organization; undefined if they are not a member. */
export async function findRole(sql: Sql, org_id: string, user_id: string): Promise<Role | undefined> {
  const [row] = await sql<{ role: Role }>`select role from member where org_id = ${org_id} and user_id = ${user_id}`
  return row?.role
}

/** Whether another owner can sign in. Reliable only while the organization is locked. */
export async function hasOtherOwner(tx: Sql, org_id: string, user_id: string): Promise<boolean> {
  const rows = await tx`
    select 1 from member m join app_user u on u.id = m.user_id and u.disabled_at is null
    where m.org_id = ${org_id} and m.role = 'owner' and m.user_id <> ${user_id} limit 1`
  return rows.length > 0
}

/** Whether a user belongs to another organization than this one. */
export async function hasOtherOrganization(tx: Sql, org_id: string, user_id: string): Promise<boolean> {
  const rows = await tx`select 1 from member where user_id = ${user_id} and org_id <> ${org_id} limit 1`
  return rows.length > 0
}

export async function updateRole(tx: Sql, org_id: string, user_id: string, role: Role): Promise<void> {
  await tx`update member set role = ${role} where org_id = ${org_id} and user_id = ${user_id}`
}

/**
 * Deletes a member. Credentials of the user stop working in the organization, because each is looked up with its
 * member.
 */
export async function deleteMember(tx: Sql, org_id: string, user_id: string): Promise<void> {
  await tx`delete from member where org_id = ${org_id} and user_id = ${user_id}`
}
