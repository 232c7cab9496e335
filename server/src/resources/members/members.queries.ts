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
  /** Null where they were never signed in, and used no key or app here. */
  last_active: string | null
}

/**
 * Of each member: their sign-ins that go on, apps and keys in this organization, and what they did here, which stays when those are
 * gone. Each is found by an index; a key's usage by its newest hour. Actors are not only identifiers, and sorted otherwise: without
 * their collation the log would be read from its end for every member.
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

/** What members are listed by; every member of it is validated. */
export interface MemberFilter {
  org_id: string
  search?: string | undefined
  /** Whether addresses are searched too: who may not see them must not find by them. */
  by_email: boolean
  role?: Role | undefined
  limit: number
  offset: number
}

/** A page of members and how many there are; the one who joined first before the others. */
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

/** `%` and `_` in a search are themselves (decision D32). */
function likePattern(search: string): string {
  return `%${search.replaceAll(/[\\%_]/g, '\\$&')}%`
}

export async function findMember(sql: Sql, org_id: string, user_id: string): Promise<MemberRow | undefined> {
  const [row] = await sql.run<MemberRow>(sql.fragment`
    select ${columns(sql)} where m.org_id = ${org_id} and m.user_id = ${user_id}`)
  return row
}

/** The role that a user has in an organization now; undefined where they are no member. */
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

/** From now on no credential of theirs works in the organization, because each is looked up with its member. */
export async function deleteMember(tx: Sql, org_id: string, user_id: string): Promise<void> {
  await tx`delete from member where org_id = ${org_id} and user_id = ${user_id}`
}
