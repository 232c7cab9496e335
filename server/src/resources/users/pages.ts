import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '#contract/core/problems.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import type { Context } from '../../context.ts'
import type { FormTokens } from '../../http/pages/form-token.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { continuePage, sendPage } from '../../http/pages/page.ts'
import { addressSubject, countSubject } from '../../http/access/rate-limit.ts'
import { readSessionCookie, setSessionCookie } from '../../http/pages/session-cookie.ts'
import { findSignedInUser, type SignedInUser } from './sessions/sessions.queries.ts'
import type { SignedIn, SignInContext, SignInSource } from './sign-in/sign-in.ts'

/** Dependencies of the sign-in pages. */
export interface Pages {
  context: Context
  http: HttpContext
  signing: SignInContext
  tokens: FormTokens
  secure: () => boolean
}

/** The user that the browser of a request is signed in as. */
export async function signedInUser(
  { context }: Pick<Pages, 'context'>,
  request: FastifyRequest,
): Promise<SignedInUser | undefined> {
  return findSignedInUser(context.sql, request)
}

/** The token of the invitation whose page has this path. */
export function invitationIn(return_to: string): string | undefined {
  return /^\/invite\/([\w-]{1,128})$/.exec(return_to)?.[1]
}

/** Sets the session cookie and redirects; to an app only by way of a page (see `page.ts`). */
export function goOn(
  { secure }: Pick<Pages, 'secure'>,
  reply: FastifyReply,
  { secret }: SignedIn,
  return_to: string,
): FastifyReply {
  setSessionCookie(reply, secret, secure())
  if (return_to.startsWith('/oauth2/')) return sendPage(reply, continuePage(return_to, 'the app that you came from'))
  return reply.redirect(return_to, 303)
}

/** Counts a submitted form against its IP address, like an attempt to sign in; throws 429. */
export async function countForm({ http }: Pages, request: FastifyRequest): Promise<void> {
  await countSubject(http.authentication.sql, http.authentication.rates, 'login', addressSubject(request.ip))
}

/** Where a sign-in comes from. */
export function signInFrom(request: FastifyRequest): SignInSource {
  return {
    ip: request.ip,
    user_agent: userAgentOf(request),
    request_id: request.id,
    replaces: readSessionCookie(request),
  }
}

/** The text of an error on a page. */
export function sentence(problem: Problem): string {
  const retry_after = Number(problem.members.retry_after)
  if (problem.kind !== 'rate_limit_exceeded' || !(retry_after > 0)) return problem.message
  const minutes = Math.ceil(retry_after / 60)
  return `Too many attempts. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`
}
