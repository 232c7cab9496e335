import type { Actor } from '#contract/accounts/audit.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import type { SsoConfig } from '../../../config/config-sso.ts'
import { recordAudit } from '../../../events/audit/audit.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { holdSession } from '../sessions/sessions.queries.ts'
import {
  deleteIdentity,
  findAccountByEmail,
  findIdentity,
  findIdentityOwner,
  holdIdentity,
} from './identities.queries.ts'
import {
  beginSession,
  checkPassword,
  signingIn,
  type SignedIn,
  type SignInContext,
  type SignInSource,
} from '../sign-in/sign-in.ts'
import { checkDomain, confirmEmail, conflict, link } from './sso-accounts.ts'
import { lostAttempt } from './sso-failure.ts'
import type { SsoProfile } from './sso-profile.ts'
import { findCredentials } from '../users.queries.ts'

/** Who wants to link, from which session. */
export interface LinkingUser {
  user_id: string
  session_id: string
}

/**
 * Links who came back from a provider with the user who sent them there and is still signed in. Linking again what is
 * linked with the same user changes nothing. Throws 403 where the session has ended, 409 where it is another user's.
 */
export async function linkToUser(
  sql: Sql,
  { user_id, session_id }: LinkingUser,
  provider: SsoConfig,
  profile: SsoProfile,
  from: SignInSource,
): Promise<void> {
  checkDomain({ provider, profile })
  await sql.begin(async (tx) => {
    await holdIdentity(tx, profile)
    const owner = await findIdentityOwner(tx, profile)
    if (owner && owner.id !== user_id) throw ofAnother(provider)
    if (!(await holdSession(tx, session_id)))
      throw new Problem('insufficient_permissions', undefined, { message: 'You are not signed in any more.' })
    if (!owner) await link(tx, user_id, { provider, profile }, signingIn(from, user_id, session_id))
    await confirmEmail(tx, user_id, profile, from)
  })
}

/** Who was proved by a provider, and the account whose password they were asked for. */
export interface Proof {
  /** The provider's name. */
  provider: string
  profile: SsoProfile
  user_id: string
  email: string
}

/**
 * Links a proven identity with the account that has the same verified address, after its password, and signs the user
 * in. Throws like signing in by password; 400 where the facts have changed meanwhile, 409 where another user has linked
 * it.
 */
export async function linkByPassword(
  signing: SignInContext,
  { profile, user_id, email }: Omit<Proof, 'provider'>,
  provider: SsoConfig,
  password: string,
  from: SignInSource,
): Promise<SignedIn> {
  const { sql } = signing
  const user = await checkPassword(signing, { email, find: () => findCredentials(sql, user_id) }, password, from)
  return sql.begin(async (tx) => {
    await holdIdentity(tx, profile)
    const owner = await findIdentityOwner(tx, profile)
    if (owner && owner.id !== user_id) throw ofAnother(provider)
    const account = await findAccountByEmail(tx, email)
    if (account?.id !== user_id || !account.email_verified) throw lostAttempt()
    if (!owner) await link(tx, user_id, { provider, profile }, signingIn(from, user_id))
    const signedIn = await beginSession(tx, user, from, { method: 'sso', provider: provider.name })
    if (!signedIn) throw lostAttempt()
    return signedIn
  })
}

/**
 * Unlinks an identity of a user's. Throws 404 where it is none of theirs (any more), and 409 where it is the last way to
 * sign in that is left.
 */
export async function unlinkIdentity(
  sql: Sql,
  { issuers, nameOf }: ProvidersByIssuer,
  { user_id, identity_id }: { user_id: string; identity_id: string },
  actor: Actor,
): Promise<void> {
  await sql.begin(async (tx) => {
    const deleted = await deleteIdentity(tx, user_id, identity_id, issuers)
    if (!deleted) {
      if (!(await findIdentity(tx, user_id, identity_id))) throw notFound('identity_not_found', 'identity', identity_id)
      throw conflict('last_way_to_sign_in', 'Nothing else would sign you in. Set a password first.', {
        resource_type: 'identity',
        resource_id: identity_id,
      })
    }
    const { issuer, subject, email } = deleted
    const before = { provider: nameOf(issuer), issuer, subject, email }
    await recordAudit(tx, actor, { action: 'identity.unlinked', target: identity_id, before })
  })
}

function ofAnother({ label }: SsoConfig): Problem {
  return conflict('identity_taken', `This account at ${label} is connected with another account here.`, {
    resource_type: 'identity',
    conflicting_field: 'subject',
  })
}

/** The providers by what identities say of them: all issuers, and the name of each; null for one that is not configured. */
export interface ProvidersByIssuer {
  issuers: readonly string[]
  nameOf: (issuer: string) => string | null
}
