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
import { checkDomain, confirmEmail, conflict, followGroups, link } from './sso-accounts.ts'
import { lostAttempt } from './sso-failure.ts'
import type { SsoProfile } from './sso-profile.ts'
import { findCredentials } from '../users.queries.ts'

/** A user who links an identity, and the session. */
export interface LinkingUser {
  user_id: string
  session_id: string
}

/**
 * Links the identity that a user brought back from a provider with that user, who must still be signed in. Linking an
 * identity again with the same user changes nothing. Throws 403 if the session has ended, 409 if the identity is linked
 * with another user.
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
      throw new Problem('insufficient_permissions', undefined, { message: 'You are no longer signed in.' })
    if (!owner) await link(tx, user_id, { provider, profile }, signingIn(from, user_id, session_id))
    await confirmEmail(tx, user_id, profile, from)
  })
}

/** An identity proven by a provider, and the account whose password the user must enter. */
export interface Proof {
  /** The provider's name. */
  provider: string
  profile: SsoProfile
  user_id: string
  email: string
}

/**
 * Links a proven identity with the account that has the same verified address, after checking its password, and signs
 * the user in. Throws like signing in by password; 400 if the account or provider has changed meanwhile, 409 if another
 * user has linked the identity.
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
    await followGroups(tx, user_id, { provider, profile }, from)
    const signedIn = await beginSession(tx, user, from, { method: 'sso', provider: provider.name })
    if (!signedIn) throw lostAttempt()
    return signedIn
  })
}

/** Unlinks an identity of a user. Throws 404 if the user does not have it, and 409 if it is the last way to sign in. */
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
      throw conflict('last_way_to_sign_in', 'This is your last way to sign in. Set a password first.', {
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

/**
 * The configured providers by issuer: all issuers, and the name of each; null for an issuer that is not configured.
 */
export interface ProvidersByIssuer {
  issuers: readonly string[]
  nameOf: (issuer: string) => string | null
}
