import { identitiesMax } from '#contract/accounts/sso.ts'
import { brokenConstraint, type Sql } from '../../../platform/postgres/database.ts'
import { newId } from '../../../platform/ids.ts'
import type { SignInRow } from '../users.queries.ts'

/** An account at an identity provider that signs a user in, in a response. */
export interface IdentityRow {
  id: string
  issuer: string
  subject: string
  email: string | null
  created_at: string
  last_sign_in_at: string
}

/** Key of a user at an identity provider; both parts are compared byte for byte. */
export interface IdentityKey {
  issuer: string
  subject: string
}

/** Identities of a user, oldest link first. */
export async function listIdentities(sql: Sql, user_id: string): Promise<IdentityRow[]> {
  return sql<IdentityRow>`
    select id, issuer, subject, email, created_at, last_sign_in_at from identity
    where user_id = ${user_id} order by created_at, id`
}

/** One identity of a user. */
export async function findIdentity(sql: Sql, user_id: string, id: string): Promise<IdentityRow | undefined> {
  const [row] = await sql<IdentityRow>`
    select id, issuer, subject, email, created_at, last_sign_in_at from identity where id = ${id} and user_id = ${user_id}`
  return row
}

/**
 * Locks an identity until the transaction ends, so that the second of two concurrent first sign-ins finds the account
 * that the first created.
 */
export async function holdIdentity(tx: Sql, { issuer, subject }: IdentityKey): Promise<void> {
  await tx`select pg_advisory_xact_lock(hashtextextended('identity ' || ${issuer} || ' ' || ${subject}, 0))`
}

/** An account of this service, with the columns that sign-in with an identity provider needs. */
export interface AccountRow extends SignInRow {
  email_verified: boolean
  is_disabled: boolean
}

/** The account that an identity signs in, and the identity's id. In a transaction the account is locked. */
export async function findIdentityOwner(
  tx: Sql,
  { issuer, subject }: IdentityKey,
): Promise<(AccountRow & { identity_id: string }) | undefined> {
  const [row] = await tx<AccountRow & { identity_id: string }>`
    select i.id as identity_id, u.id, u.email, u.password_hash, u.email_verified, u.disabled_at is not null as is_disabled
    from identity i join app_user u on u.id = i.user_id
    where i.issuer = ${issuer} and i.subject = ${subject} for share of u`
  return row
}

/** The account with an address, disabled or not. */
export async function findAccountByEmail(sql: Sql, email: string): Promise<AccountRow | undefined> {
  const [row] = await sql<AccountRow>`
    select id, email, password_hash, email_verified, disabled_at is not null as is_disabled
    from app_user where lower(email) = lower(${email})`
  return row
}

/**
 * Links an identity with a user, whose row is locked, and returns its id. `taken` if it is already linked with a user;
 * `full` if the user has as many as allowed.
 */
export async function insertIdentity(
  tx: Sql,
  user_id: string,
  { issuer, subject }: IdentityKey,
  email: string | undefined,
): Promise<{ id: string } | 'taken' | 'full'> {
  await tx`select 1 from app_user where id = ${user_id} for no key update`
  try {
    const [row] = await tx.begin(
      (inner) => inner<{ id: string }>`
        insert into identity (id, issuer, subject, user_id, email)
        select ${newId('ident')}, ${issuer}, ${subject}, ${user_id}, ${email ?? null}
        where (select count(*) from identity where user_id = ${user_id}) < ${identitiesMax}
        returning id`,
    )
    return row ?? 'full'
  } catch (error) {
    if (brokenConstraint(error) === 'identity_pkey') return 'taken'
    throw error
  }
}

/** Records that an identity has just signed its user in. */
export async function touchIdentity(tx: Sql, id: string, email: string | undefined): Promise<void> {
  await tx`update identity set last_sign_in_at = now(), email = coalesce(${email ?? null}, email) where id = ${id}`
}

/**
 * Unlinks an identity if another way to sign in is left: a password, or an identity of a configured provider
 * (`issuers`). Returns it; undefined if it is the last way, or not an identity of the user. The user's row is locked,
 * so that the second of two concurrent calls sees the result of the first.
 */
export async function deleteIdentity(
  tx: Sql,
  user_id: string,
  id: string,
  issuers: readonly string[],
): Promise<IdentityRow | undefined> {
  const [user] = await tx<{ has_password: boolean }>`
    select password_hash is not null as has_password from app_user where id = ${user_id} for no key update`
  const [row] = await tx<IdentityRow>`
    delete from identity where id = ${id} and user_id = ${user_id}
      and (${user?.has_password ?? false} or exists (
        select 1 from identity o where o.user_id = ${user_id} and o.id <> ${id} and o.issuer = any(${[...issuers]})))
    returning id, issuer, subject, email, created_at, last_sign_in_at`
  return row
}

/**
 * Marks the account's address as verified if it is the one that a provider has verified; returns whether that changed
 * it.
 */
export async function verifyEmail(tx: Sql, user_id: string, email: string): Promise<boolean> {
  const rows = await tx`
    update app_user set email_verified = true, updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${user_id} and lower(email) = lower(${email}) and not email_verified returning id`
  return rows.length > 0
}
