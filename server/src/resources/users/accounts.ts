import { invalid, Problem, type Issue } from '#contract/core/problems.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { passwordError, passwordErrors, type PasswordError } from '../../platform/crypto/password-rules.ts'
import { endGrantsOf } from '../oauth/oauth.queries.ts'
import { endSessionsOf, type RequestSource } from './sessions/sessions.queries.ts'
import { isFor, join, requireOffer } from './join.ts'
import { notCurrent, reauthenticate } from './reauthenticated-user.ts'
import { beginSession, signingIn, type SignedIn, type SignInContext, type SignInSource } from './sign-in/sign-in.ts'
import { findCredentials, insertOrganization, insertUser, updatePasswordHash } from './users.queries.ts'

/** A user who creates an account. */
export interface SignUp {
  email: string
  password: string
  name: string
  /** The token of an invitation. */
  invitation?: string | undefined
}

/**
 * Creates an account and signs it in. The account gets a new organization, or joins that of its invitation: every
 * account has one (decision D62). Throws `validation_error` for a weak password or an address other than the
 * invitation's, `resource_conflict` for an address that is taken, and 404 for an invalid invitation. Of concurrent
 * sign-ups with one invitation exactly one succeeds.
 */
export async function signUp(
  { sql, passwords }: SignInContext,
  { email, password, name, invitation }: SignUp,
  from: SignInSource,
): Promise<SignedIn> {
  // Checked first, because hashing the password is expensive.
  const offer = invitation === undefined ? undefined : await requireOffer(sql, invitation)
  if (offer && !isFor(offer, email))
    throw invalid({ field: 'email', message: 'must be the address that was invited', code: 'invalid_choice' })
  refuseFault('password', passwordError(password, email))
  const password_hash = await passwords.hash(password)
  return sql.begin(async (tx) => {
    const user = await insertUser(tx, { email, name: name.normalize('NFC'), password_hash })
    if (!user) {
      throw new Problem(
        'resource_conflict',
        { resource_type: 'user', conflicting_field: 'email', conflicting_value: email },
        {
          message: 'An account with this e-mail address already exists.',
        },
      )
    }
    const organization =
      invitation === undefined
        ? await insertOrganization(tx, `${user.name}'s organization`, user.id)
        : await join(tx, invitation, user.id, signingIn(from, user.id))
    const actor = { ...signingIn(from, user.id), org_id: organization.id }
    await recordAudit(tx, actor, { action: 'user.created', target: user.id, after: user })
    const signedIn = await beginSession(tx, { id: user.id, email, password_hash }, from, { method: 'sign_up' })
    if (!signedIn) throw new Error('an account that was just made can sign in')
    return signedIn
  })
}

/** A change of password: the user, the session and the passwords. */
export interface PasswordChange {
  user_id: string
  session_id: string
  /** Undefined for an account without a password; it needs a recent sign-in instead. */
  current_password: string | undefined
  new_password: string
}

/**
 * Changes a password, or sets the first one, and ends all other sessions and grants of the user (decision D65). Returns
 * how many it ended. Throws `validation_error` if the current password is wrong or the new one is not allowed,
 * `insufficient_permissions` if the account has no password and the sign-in is too old, and `rate_limit_exceeded` after
 * too many wrong passwords.
 */
export async function changePassword(
  { sql, passwords }: SignInContext,
  change: PasswordChange,
  from: RequestSource & { request_id: string },
): Promise<number> {
  const known = await findCredentials(sql, change.user_id)
  if (!known) throw new Problem('unauthorized')
  refuseFault('new_password', passwordError(change.new_password, known.email))
  if (known.password_hash !== null && change.current_password === undefined)
    throw invalid({ field: 'current_password', message: 'current_password is required', code: 'required' })
  const user = await reauthenticate({ sql, passwords }, { ...change, during: 'password_change' }, from)
  const password_hash = await passwords.hash(change.new_password)

  return sql.begin(async (tx) => {
    if (!(await updatePasswordHash(tx, user.id, user.password_hash, password_hash))) throw notCurrent()
    const ended = await endOthers(tx, user.id, change.session_id)
    await recordAudit(tx, signingIn(from, user.id, change.session_id), {
      action: 'user.password_changed',
      target: user.id,
      detail: { sessions_ended: ended },
    })
    return ended
  })
}

/** Lock order: sessions before grants. A concurrent consent holds the session, so its new grant is seen. */
async function endOthers(tx: Sql, user_id: string, session_id: string): Promise<number> {
  const sessions = await endSessionsOf(tx, user_id, session_id)
  const grants = await endGrantsOf(tx, user_id, session_id)
  return sessions + grants.length
}

const issueCodes: Record<PasswordError, Issue['code']> = {
  too_short: 'too_short',
  too_long: 'too_long',
  unreadable: 'invalid_format',
  email: 'invalid_choice',
  common: 'invalid_choice',
  repeated: 'invalid_choice',
  sequence: 'invalid_choice',
}

function refuseFault(field: string, fault: PasswordError | undefined): void {
  if (fault) throw invalid({ field, message: passwordErrors[fault], code: issueCodes[fault] })
}
