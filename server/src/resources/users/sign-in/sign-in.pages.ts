import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { Problem, type Issue } from '#contract/core/problems.ts'
import type { Context } from '../../../context.ts'
import { recordAudit } from '../../../events/audit/audit.ts'
import { actorOf } from '../../../http/access/actor.ts'
import {
  answerWithPages,
  checkFormOrigin,
  formBytesMax,
  isOwnForm,
  preSessionOf,
  readForm,
  safePath,
} from '../../../http/pages/forms.ts'
import { formTokens } from '../../../http/pages/form-token.ts'
import type { HttpContext } from '../../../http/http-context.ts'
import { toProblem } from '../../../http/errors.ts'
import { sendPage } from '../../../http/pages/page.ts'
import { clearSessionCookie } from '../../../http/pages/session-cookie.ts'
import { findWaitingApp } from '../../oauth/oauth.queries.ts'
import { findOffer } from '../../members/invitations.queries.ts'
import { endSession, type SignedInUser } from '../sessions/sessions.queries.ts'
import { accountErrors, readAccount } from '../account-form.ts'
import { signUp } from '../accounts.ts'
import { invitationPages } from '../invitation.pages.ts'
import { countForm, goOn, invitationIn, sentence, signedInUser, signInFrom, type Pages } from '../pages.ts'
import { signIn, type SignInContext } from './sign-in.ts'
import { signedInPage, signInPage, signUpPage } from './sign-in-page.ts'

/** Target of a sign-in that has no other. */
const home = '/'

/** Pages for signing in, up and out: plain HTML that works without scripts (decision D64). */
export function signInPages(app: FastifyInstance, http: HttpContext, context: Context, signing: SignInContext): void {
  const pages: Pages = {
    context,
    http,
    signing,
    tokens: formTokens(context.secrets),
    secure: () => context.public_url().startsWith('https:'),
  }
  app.register(async (scope) => {
    answerWithPages(scope)
    scope.get('/login', (request, reply) => showSignIn(pages, request, reply))
    scope.post('/login', { bodyLimit: formBytesMax }, (request, reply) => submitSignIn(pages, request, reply))
    scope.post('/logout', { bodyLimit: formBytesMax }, (request, reply) => submitSignOut(pages, request, reply))
    invitationPages(scope, pages)
    if (context.config.signup !== 'open') return
    scope.get('/signup', (request, reply) => showSignUp(pages, request, reply))
    scope.post('/signup', { bodyLimit: formBytesMax }, (request, reply) => submitSignUp(pages, request, reply))
  })
}

async function showSignIn(pages: Pages, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const query = request.query as Record<string, unknown>
  const text = (name: string): string | undefined => (typeof query[name] === 'string' ? query[name] : undefined)
  const return_to = safePath(text('return_to'), home)
  const user = await signedInUser(pages, request)
  // With `again` the user must sign in again despite a session, because an app asked for it.
  if (user && text('again') === undefined) {
    if (return_to !== home) return reply.redirect(return_to, 303)
    const hasProviders = pages.context.config.sso.length > 0
    return sendPage(reply, signedInPage(user, pages.tokens.issue('logout', user.session_id), hasProviders))
  }
  const anew = text('again') !== undefined
  return sendSignIn(pages, request, reply, { return_to, email: text('email')?.slice(0, 254), anew })
}

async function sendSignIn(
  { context, tokens, secure }: Pages,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: { return_to: string; email?: string | undefined; anew: boolean; fault?: string; status?: number },
): Promise<FastifyReply> {
  const page = signInPage({
    ...shown,
    providers: context.config.sso,
    invitation: invitationIn(shown.return_to),
    onward: await waiting(context, shown.return_to),
    token: tokens.issue('login', preSessionOf(request, reply, secure())),
    signup: context.config.signup === 'open',
  })
  return sendPage(reply, page, shown.status)
}

async function submitSignIn(pages: Pages, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  checkFormOrigin(request)
  const { token, email = '', password = '', return_to: wanted, again: wantsAnew } = readForm(request)
  const return_to = safePath(wanted, home)
  const again = (status: number, fault: string): Promise<FastifyReply> =>
    sendSignIn(pages, request, reply, { return_to, email, anew: wantsAnew !== undefined, fault, status })
  if (!isOwnForm(pages.tokens, 'login', token, request))
    return again(403, 'The form has expired. Please sign in again.')
  try {
    await countForm(pages, request)
    return goOn(
      pages,
      reply,
      await signIn(pages.signing, email.slice(0, 254), password.slice(0, 1024), signInFrom(request)),
      return_to,
    )
  } catch (error) {
    const problem = toProblem(error)
    if (problem.status === 500) throw error
    return again(problem.status, sentence(problem))
  }
}

async function showSignUp(pages: Pages, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const { return_to } = request.query as { return_to?: unknown }
  return sendSignUp(pages, request, reply, {
    return_to: safePath(typeof return_to === 'string' ? return_to : undefined, home),
  })
}

async function sendSignUp(
  { tokens, secure }: Pages,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: {
    return_to: string
    email?: string
    name?: string
    issues?: readonly Issue[]
    fault?: string
    status?: number
  },
): Promise<FastifyReply> {
  const token = tokens.issue('signup', preSessionOf(request, reply, secure()))
  return sendPage(reply, signUpPage({ ...shown, token }), shown.status)
}

async function submitSignUp(pages: Pages, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  checkFormOrigin(request)
  const { token, email = '', password = '', name = '', return_to: wanted } = readForm(request)
  const return_to = safePath(wanted, home)
  const again = (status: number, fault: string, issues: readonly Issue[] = []): Promise<FastifyReply> =>
    sendSignUp(pages, request, reply, {
      return_to,
      email,
      name: name.slice(0, bounds.user_name),
      fault,
      issues,
      status,
    })
  if (!isOwnForm(pages.tokens, 'signup', token, request)) return again(403, 'The form has expired. Please try again.')
  try {
    await countForm(pages, request)
    const account = readAccount({ email, password, name })
    return goOn(pages, reply, await signUp(pages.signing, account, signInFrom(request)), return_to)
  } catch (error) {
    const { status, fault, issues } = accountErrors(error)
    return again(status, fault, issues)
  }
}

async function submitSignOut(pages: Pages, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  checkFormOrigin(request)
  const { token, return_to } = readForm(request)
  const user = await signedInUser(pages, request)
  if (user && !pages.tokens.verify(token, 'logout', user.session_id)) {
    throw new Problem('insufficient_permissions', undefined, {
      message: 'The form has expired. Go back and try again.',
    })
  }
  if (user) await signOut(pages, request, user)
  clearSessionCookie(reply, pages.secure())
  const onward = safePath(return_to, home)
  return reply.redirect(onward === home ? '/login' : `/login?${new URLSearchParams({ return_to: onward })}`, 303)
}

/** Ends a session and audits it, as the API operation does. */
async function signOut({ context }: Pages, request: FastifyRequest, user: SignedInUser): Promise<void> {
  const { user_id, session_id } = user
  const credential = { kind: 'session', id: session_id } as const
  await context.sql.begin(async (tx) => {
    if (!(await endSession(tx, user_id, session_id))) return
    const actor = { ...actorOf(request), actor: user_id, credential }
    await recordAudit(tx, actor, { action: 'user.signed_out', target: user_id })
  })
}

/** The app or organization that `return_to` leads to, so that the page can name it. */
async function waiting({ sql }: Context, return_to: string): Promise<string | undefined> {
  const [, uid] = /^\/oauth2\/interaction\/([\w-]{1,64})$/.exec(return_to) ?? []
  if (uid !== undefined) return findWaitingApp(sql, uid)
  const token = invitationIn(return_to)
  return token === undefined ? undefined : (await findOffer(sql, token))?.organization
}
