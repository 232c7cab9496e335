import type { Plan } from '#contract/accounts/users.ts'
import type { Role } from '#contract/core/scopes.ts'
import { brokenConstraint, jsonb, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'

/** A user in a response (spec 2.5), without organizations. */
export interface UserRow {
  id: string
  name: string
  avatar_url: string
  created_at: string
  updated_at: string
  email_verified: boolean
  plan: Plan
}

const columns = (sql: Sql) => sql.fragment`id, name, avatar_url, created_at, updated_at, email_verified, plan`

export async function findUser(sql: Sql, id: string): Promise<UserRow | undefined> {
  const [row] = await sql.run<UserRow>(sql.fragment`select ${columns(sql)} from app_user where id = ${id}`)
  return row
}

/** Reads a user and locks its row until the transaction ends. */
export async function lockUser(tx: Sql, id: string): Promise<UserRow | undefined> {
  const [row] = await tx.run<UserRow>(
    tx.fragment`select ${columns(tx)} from app_user where id = ${id} for no key update`,
  )
  return row
}

/** An organization with the member's role (decision D62). */
export interface UserOrganization {
  id: string
  name: string
  role: Role
  joined_at: string
}

/** Organizations of a user, the one joined first at the beginning. */
export async function listOrganizations(sql: Sql, user_id: string): Promise<UserOrganization[]> {
  return sql<UserOrganization>`
    select o.id, o.name, m.role, m.joined_at from member m join organization o on o.id = m.org_id
    where m.user_id = ${user_id} order by m.joined_at, o.id`
}

/** Changes the given members. */
export async function updateUser(
  sql: Sql,
  id: string,
  { name, avatar_url }: { name?: string | undefined; avatar_url?: string | undefined },
): Promise<UserRow | undefined> {
  const [row] = await sql.run<UserRow>(sql.fragment`
    update app_user set name = coalesce(${name ?? null}, name), avatar_url = coalesce(${avatar_url ?? null}, avatar_url),
      updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id} returning ${columns(sql)}`)
  return row
}

/** A user's preferences for the console; members that were never set are missing. */
export async function findPreferences(sql: Sql, id: string): Promise<object> {
  const [row] = await sql<{ preferences: object }>`select preferences from app_user where id = ${id}`
  return row?.preferences ?? {}
}

/** Changes the given preferences, and returns all of them. */
export async function updatePreferences(sql: Sql, id: string, given: object): Promise<object> {
  const [row] = await sql<{ preferences: object }>`
    update app_user set preferences = preferences || ${jsonb(given)}::jsonb where id = ${id} returning preferences`
  return row?.preferences ?? {}
}

/** Columns that signing in needs. */
export interface SignInRow {
  id: string
  email: string
  password_hash: string | null
}

/** Addresses are compared ignoring case. A disabled user is treated as unknown. */
export async function findUserForSignIn(sql: Sql, email: string): Promise<SignInRow | undefined> {
  const [row] = await sql<SignInRow>`
    select id, email, password_hash from app_user where lower(email) = lower(${email}) and disabled_at is null`
  return row
}

/** Like `findUserForSignIn`, by id, for a signed-in user. */
export async function findCredentials(sql: Sql, id: string): Promise<SignInRow | undefined> {
  const [row] =
    await sql<SignInRow>`select id, email, password_hash from app_user where id = ${id} and disabled_at is null`
  return row
}

/** Replaces a password hash if it is still `before`, so that only one of two concurrent changes succeeds. */
export async function updatePasswordHash(sql: Sql, id: string, before: string | null, after: string): Promise<boolean> {
  const rows = await sql`
    update app_user set password_hash = ${after} where id = ${id} and password_hash is not distinct from ${before} returning id`
  return rows.length > 0
}

/** A new account. */
export interface NewUser {
  email: string
  name: string
  /** Null for an account without a password, which signs in with an identity provider. */
  password_hash: string | null
  /** Whether a provider has verified the address. Default: false. */
  email_verified?: boolean
}

/** Creates a user; undefined if the address is taken. */
export async function insertUser(tx: Sql, user: NewUser): Promise<UserRow | undefined> {
  try {
    const [row] = await tx.begin((inner) =>
      inner.run<UserRow>(inner.fragment`
      insert into app_user (id, email, name, password_hash, email_verified)
      values (${newId('user')}, ${user.email}, ${user.name}, ${user.password_hash}, ${user.email_verified ?? false})
      returning ${columns(inner)}`),
    )
    return row
  } catch (error) {
    if (brokenConstraint(error) === 'app_user_email') return undefined
    throw error
  }
}

/** Creates an organization with its owner: every user has at least one (decision D62). */
export async function insertOrganization(tx: Sql, name: string, owner_id: string): Promise<UserOrganization> {
  const id = newId('org')
  await tx`insert into organization (id, name) values (${id}, ${name})`
  const [row] = await tx<UserOrganization>`
    insert into member (org_id, user_id, role) values (${id}, ${owner_id}, 'owner')
    returning org_id as id, ${name}::text as name, role, joined_at`
  if (!row) throw new Error('an inserted member is returned')
  return row
}

/** The oldest organization, locked so that it cannot be deleted; undefined if there is none. */
export async function findFirstOrganization(tx: Sql): Promise<string | undefined> {
  const [row] = await tx<{ id: string }>`
    select id from organization order by created_at, id limit 1 for key share`
  return row?.id
}

/** Makes a new user a member. */
export async function insertMember(
  tx: Sql,
  { org_id, user_id, role }: { org_id: string; user_id: string; role: Role },
): Promise<void> {
  await tx`insert into member (org_id, user_id, role) values (${org_id}, ${user_id}, ${role})`
}

/** Whether there is no account yet. */
export async function isWithoutUsers(sql: Sql): Promise<boolean> {
  const rows = await sql`select 1 from app_user limit 1`
  return rows.length === 0
}

/** Locks a password until the transaction ends; false if it was changed or removed meanwhile. */
export async function holdPassword(tx: Sql, id: string, password_hash: string | null): Promise<boolean> {
  const rows = await tx`
    select 1 from app_user where id = ${id} and password_hash is not distinct from ${password_hash} and disabled_at is null for share`
  return rows.length > 0
}
