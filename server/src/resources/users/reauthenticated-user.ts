import { invalid, Problem } from '#contract/core/problems.ts'
import { recentSignIn_minutes } from '#contract/accounts/users.ts'
import { isSessionRecent, type RequestSource } from './sessions/sessions.queries.ts'
import { checkPassword, type Account, type SignInContext } from './sign-in/sign-in.ts'
import { findCredentials, type SignInRow } from './users.queries.ts'

/** A signed-in user who asks for an action that needs proof that the account's owner is at the browser. */
export interface ReauthenticatedUser {
  user_id: string
  session_id: string
  /** Undefined if not given. */
  current_password: string | undefined
  /** The action, for the audit log. */
  during: 'password_change' | 'identity_link'
}

/**
 * Re-authenticates a signed-in user: by the password if given, otherwise by a recent sign-in. Returns the account's
 * credentials. Throws 400 for a wrong password, 403 for a sign-in that is too old, and 429 after too many wrong
 * passwords.
 */
export async function reauthenticate(
  signing: SignInContext,
  { user_id, session_id, current_password, during }: ReauthenticatedUser,
  from: RequestSource & { request_id: string },
): Promise<SignInRow> {
  const known = await findCredentials(signing.sql, user_id)
  if (!known) throw new Problem('unauthorized')
  if (current_password !== undefined) {
    const account = { email: known.email, find: async () => known, session_id, during }
    return checkCurrent(signing, account, current_password, from)
  }
  if (await isSessionRecent(signing.sql, session_id, recentSignIn_minutes)) return known
  const ask = known.password_hash === null ? 'Sign in again first' : 'Give your password, or sign in again'
  throw new Problem('insufficient_permissions', undefined, {
    message: `${ask}: you signed in more than ${recentSignIn_minutes} minutes ago.`,
  })
}

/**
 * Checks the password of a signed-in user. The error names the wrong field; `unauthorized` would say that the user is
 * not signed in.
 */
async function checkCurrent(
  signing: SignInContext,
  account: Account,
  password: string,
  from: RequestSource & { request_id: string },
): Promise<SignInRow> {
  try {
    return await checkPassword(signing, account, password, from)
  } catch (error) {
    throw error instanceof Problem && error.kind === 'unauthorized' ? notCurrent() : error
  }
}

/** The given password is not, or no longer, the account's. */
export function notCurrent(): Problem {
  return invalid({ field: 'current_password', message: 'is not the current password', code: 'invalid_choice' })
}
