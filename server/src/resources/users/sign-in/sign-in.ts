import type { Actor } from '#contract/accounts/audit.ts'
import { Problem } from '#contract/core/problems.ts'
import { recordAudit } from '../../../events/audit/audit.ts'
import { addressSubject, windowHeaders } from '../../../http/access/rate-limit.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { PasswordsBusy, type Passwords } from '../../../platform/crypto/passwords.ts'
import { endSessionOfCookie, insertSession, type RequestSource, type SessionRow } from '../sessions/sessions.queries.ts'
import { beginAttempt, clearAttempts, forgetAttempt, type TooManyFailures } from './sign-in-attempts.queries.ts'
import {
  findUser,
  findUserForSignIn,
  holdPassword,
  updatePasswordHash,
  type SignInRow,
  type UserRow,
} from '../users.queries.ts'

/** Dependencies of signing in. */
export interface SignInContext {
  sql: Sql
  passwords: Passwords
}

/** Where a sign-in comes from, for the audit log and the session. */
export interface SignInSource extends RequestSource {
  request_id: string
  /** The browser's previous session. It ends, so that its identifier is never reused (decision D65). */
  replaces: string | undefined
}

/** A completed sign-in. `secret` goes only into the cookie. */
export interface SignedIn {
  user: UserRow
  session: SessionRow
  secret: string
}

/**
 * Signs a user in by e-mail address and password. Unknown addresses, disabled accounts and wrong passwords give the
 * same `unauthorized`, with the same text after the same time. Throws `rate_limit_exceeded` after too many failures
 * (decision D66), and `PasswordsBusy`.
 */
export async function signIn(
  { sql, passwords }: SignInContext,
  email: string,
  password: string,
  from: SignInSource,
): Promise<SignedIn> {
  const user = await checkPassword(
    { sql, passwords },
    { email, find: () => findUserForSignIn(sql, email) },
    password,
    from,
  )
  return sql.begin(async (tx) => {
    const signedIn = await beginSession(tx, user, from, { method: 'password' })
    if (!signedIn) throw wrongPassword()
    return signedIn
  })
}

/**
 * Begins a session for a user who has just authenticated. Undefined if the password was changed or the account disabled
 * meanwhile: a change ends all sessions, so none may begin with the old password after it. `how` goes into the audit
 * log.
 */
export async function beginSession(
  tx: Sql,
  user: SignInRow,
  from: SignInSource,
  how: { method: string; [more: string]: unknown },
): Promise<SignedIn | undefined> {
  if (!(await holdPassword(tx, user.id, user.password_hash))) return undefined
  const row = await findUser(tx, user.id)
  if (!row) return undefined
  if (from.replaces !== undefined) await endSessionOfCookie(tx, from.replaces)
  const { session, secret } = await insertSession(tx, user.id, from)
  const actor = signingIn(from, user.id, session.id)
  await recordAudit(tx, actor, { action: 'user.signed_in', target: user.id, detail: how })
  return { user: row, session, secret }
}

/**
 * The actor of a sign-in for the audit log: none before the user has authenticated, and no credential before there is
 * a session.
 */
export function signingIn(
  from: RequestSource & { request_id: string },
  actor: string | null,
  session_id?: string,
): Actor {
  const { ip, user_agent, request_id } = from
  const credential = session_id === undefined ? null : { kind: 'session' as const, id: session_id }
  return { org_id: null, actor, credential, ip, user_agent, request_id }
}

/**
 * Account whose password is checked. Attempts are counted by its address; `find` is called only for an allowed
 * attempt.
 */
export interface Account {
  email: string
  find: () => Promise<SignInRow | undefined>
  /** Session of a signed-in user. */
  session_id?: string
  /** The action that needs the password, if not signing in. */
  during?: string
}

/**
 * Checks a password against an account and returns its row with the hash that matched. Every check costs one hash, also
 * for an unknown address, and counts as a failure until it succeeds. Throws like `signIn`.
 */
export async function checkPassword(
  { sql, passwords }: SignInContext,
  account: Account,
  password: string,
  from: RequestSource & { request_id: string },
): Promise<SignInRow> {
  const address = addressSubject(from.ip)
  const attempt = await beginAttempt(sql, account.email, address)
  if ('retry_after_seconds' in attempt) throw tooManyFailures(attempt)

  const user = await account.find()
  try {
    const { correct, outdated } = await passwords.check(password, user?.password_hash)
    if (!correct || !user) {
      // Also runs for unknown addresses, which are not stored, so that the response takes as long for them.
      const detail = { method: 'password', ...(account.during === undefined ? {} : { during: account.during }) }
      const actor = signingIn(from, account.session_id === undefined ? null : (user?.id ?? null), account.session_id)
      await recordAudit(sql, actor, { action: 'user.sign_in_failed', target: user?.id ?? null, detail })
      throw wrongPassword()
    }
    await clearAttempts(sql, account.email, address)
    return outdated ? await renewHash({ sql, passwords }, user, password) : user
  } catch (error) {
    if (error instanceof PasswordsBusy) await forgetAttempt(sql, attempt.id)
    throw error
  }
}

/**
 * Hashes the password again if the configured cost has changed, because only a sign-in has it in clear (decision S1).
 */
async function renewHash({ sql, passwords }: SignInContext, user: SignInRow, password: string): Promise<SignInRow> {
  const password_hash = await passwords.hash(password)
  const renewed = await updatePasswordHash(sql, user.id, user.password_hash, password_hash)
  return renewed ? { ...user, password_hash } : user
}

function wrongPassword(): Problem {
  return new Problem('unauthorized', undefined, { message: 'The e-mail address and password do not match an account.' })
}

/** The 429 for too many failures, with the members that decision D89 requires of every limit. */
function tooManyFailures({ limit, window_seconds, reset, retry_after_seconds: retry_after }: TooManyFailures): Problem {
  const window = { name: 'failures', seconds: window_seconds, limit, remaining: 0, reset }
  return new Problem(
    'rate_limit_exceeded',
    { limit, remaining: 0, reset, retry_after, bucket: 'login' },
    {
      message: 'Too many failed attempts to sign in. Try again later.',
      members: { retry_after },
      headers: { ...windowHeaders(window, reset - retry_after), 'retry-after': String(retry_after) },
    },
  )
}
