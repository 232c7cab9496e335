import { Problem } from '#contract/problems.ts'
import { recordAudit } from '../../events/audit.ts'
import { addressSubject } from '../../http/rate-limit.ts'
import type { Sql } from '../../platform/database.ts'
import { PasswordsBusy, type Passwords } from '../../platform/passwords.ts'
import { endSessionOfCookie, insertSession, type Origin, type SessionRow } from '../sessions/sessions.queries.ts'
import { beginAttempt, clearAttempts, forgetAttempt } from './sign-in-attempts.queries.ts'
import {
  findUser,
  findUserForSignIn,
  holdPassword,
  updatePasswordHash,
  type SignInRow,
  type UserRow,
} from './users.queries.ts'

/** What signing in works with. */
export interface SignInContext {
  sql: Sql
  passwords: Passwords
}

/** Where somebody signs in, and what is written down about it. */
export interface SignInFrom extends Origin {
  request_id: string
  /** The session that the browser has had: it ends, so that its identifier is never taken over (decision D65). */
  replaces: string | undefined
}

/** Somebody signed in: `secret` belongs into the cookie and nowhere else. */
export interface SignedIn {
  user: UserRow
  session: SessionRow
  secret: string
}

/**
 * Signs somebody in by e-mail address and password. Unknown addresses, disabled accounts and wrong passwords are one
 * answer in text and time: `unauthorized`. Throws `rate_limit_exceeded` after too many failures (decision D66) and
 * `PasswordsBusy`.
 */
export async function signIn(
  { sql, passwords }: SignInContext,
  email: string,
  password: string,
  from: SignInFrom,
): Promise<SignedIn> {
  const user = await checkPassword(
    { sql, passwords },
    { email, find: () => findUserForSignIn(sql, email) },
    password,
    from,
  )
  return sql.begin(async (tx) => {
    const signedIn = await beginSession(tx, user, from)
    if (!signedIn) throw wrongPassword()
    return signedIn
  })
}

/**
 * Begins a session for somebody who has just proved to be `user`. Undefined when the password was changed or the
 * account disabled meanwhile: a change ends all sessions, so none may begin with the old password after it.
 */
export async function beginSession(tx: Sql, user: SignInRow, from: SignInFrom): Promise<SignedIn | undefined> {
  if (!(await holdPassword(tx, user.id, user.password_hash))) return undefined
  const row = await findUser(tx, user.id)
  if (!row) return undefined
  if (from.replaces !== undefined) await endSessionOfCookie(tx, from.replaces)
  const { session, secret } = await insertSession(tx, user.id, from)
  await recordAudit(tx, {
    org_id: null,
    actor: user.id,
    action: 'session.created',
    target: session.id,
    request_id: from.request_id,
    detail: { ip: from.ip, user_agent: session.user_agent },
  })
  return { user: row, session, secret }
}

/** Whose password is checked: the address counts the attempts, `find` is asked only when one is let through. */
export interface Account {
  email: string
  find: () => Promise<SignInRow | undefined>
}

/**
 * Checks a password against an account and gives its row, with the hash that was right. Every check costs one hash,
 * known address or not, and counts as a failure until it succeeds. Throws as `signIn` does.
 */
export async function checkPassword(
  { sql, passwords }: SignInContext,
  account: Account,
  password: string,
  from: Origin,
): Promise<SignInRow> {
  const address = addressSubject(from.ip)
  const attempt = await beginAttempt(sql, account.email, address)
  if ('retry_after_seconds' in attempt) throw tooManyFailures(attempt.retry_after_seconds)

  const user = await account.find()
  try {
    const { correct, outdated } = await passwords.check(password, user?.password_hash)
    if (!correct || !user) throw wrongPassword()
    await clearAttempts(sql, account.email, address)
    return outdated ? await renewHash({ sql, passwords }, user, password) : user
  } catch (error) {
    if (error instanceof PasswordsBusy) await forgetAttempt(sql, attempt.id)
    throw error
  }
}

/** Stores the password at today's cost, now that it is at hand (decisions 1.4). */
async function renewHash({ sql, passwords }: SignInContext, user: SignInRow, password: string): Promise<SignInRow> {
  const password_hash = await passwords.hash(password)
  const renewed = await updatePasswordHash(sql, user.id, user.password_hash, password_hash)
  return renewed ? { ...user, password_hash } : user
}

function wrongPassword(): Problem {
  return new Problem('unauthorized', undefined, { message: 'The e-mail address and password do not match an account.' })
}

function tooManyFailures(retry_after: number): Problem {
  return new Problem(
    'rate_limit_exceeded',
    { retry_after, bucket: 'login' },
    {
      message: 'Too many failed attempts to sign in. Try again later.',
      members: { retry_after },
      headers: { 'retry-after': String(retry_after) },
    },
  )
}
