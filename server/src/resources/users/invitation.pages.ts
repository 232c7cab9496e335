import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { Problem } from '#contract/core/problems.ts'
import { actorOf } from '../../http/access/actor.ts'
import { checkFormOrigin, formBytesMax, isOwnForm, preSessionOf, readForm } from '../../http/pages/forms.ts'
import { sendPage } from '../../http/pages/page.ts'
import { setSessionCookie } from '../../http/pages/session-cookie.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { findJoined, findOffer, isMemberBy, type Offer } from '../members/invitations.queries.ts'
import type { SignedInUser } from './sessions/sessions.queries.ts'
import { accountErrors, readAccount, type TypedAccount } from './account-form.ts'
import { signUp } from './accounts.ts'
import { goneInvitationPage, invitedPage, joinedPage, joinPage, memberPage } from './invitation-page.ts'
import { isFor, join } from './join.ts'
import { countForm, signedInUser, signInFrom, type Pages } from './pages.ts'

type Invited = FastifyRequest<{ Params: { token: string } }>

/**
 * The page of an invitation link: it shows the offer, and lets the user join, sign in or create an account, without
 * scripts. Forms carry a token bound to the link and to the session, or to the browser if there is no session.
 */
export function invitationPages(scope: FastifyInstance, pages: Pages): void {
  const bodyLimit = formBytesMax
  scope.get('/invite/:token', async (request: Invited, reply) => {
    await countForm(pages, request)
    return showInvitation(pages, request, reply)
  })
  scope.post('/invite/:token', { bodyLimit }, (request: Invited, reply) => submitJoin(pages, request, reply))
  scope.post('/invite/:token/account', { bodyLimit }, (request: Invited, reply) => submitAccount(pages, request, reply))
}

/** The error of the previous attempt, and its input. */
interface Shown {
  status?: number
  fault?: string
  typed?: TypedAccount
}

async function showInvitation(
  pages: Pages,
  request: Invited,
  reply: FastifyReply,
  shown: Shown = {},
): Promise<FastifyReply> {
  const { token } = request.params
  const { sql } = pages.context
  const user = await signedInUser(pages, request)
  const offer = await findOffer(sql, token)
  if (!offer) {
    // A user who joined by this link returns here, and may reload the page.
    const joined = user && (await findJoined(sql, token, user.user_id))
    return joined ? sendPage(reply, joinedPage(joined)) : sendPage(reply, goneInvitationPage(), 404)
  }
  if (!user) return showToStranger(pages, request, reply, offer, shown)
  if (await isMemberBy(sql, offer, user.user_id)) return sendPage(reply, memberPage(offer), shown.status)
  const page = joinPage({
    offer,
    path: pathOf(request),
    user,
    token: joinToken(pages, user, token),
    logout_token: pages.tokens.issue('logout', user.session_id),
    isForThem: isFor(offer, user.email),
    fault: shown.fault,
  })
  return sendPage(reply, page, shown.status)
}

async function showToStranger(
  pages: Pages,
  request: Invited,
  reply: FastifyReply,
  offer: Offer,
  { status, fault, typed = {} }: Shown,
): Promise<FastifyReply> {
  const token = pages.tokens.issue(accountForm(request), preSessionOf(request, reply, pages.secure()))
  const { sso: providers } = pages.context.config
  return sendPage(reply, invitedPage({ offer, path: pathOf(request), token, typed, fault, providers }), status)
}

async function submitJoin(pages: Pages, request: Invited, reply: FastifyReply): Promise<FastifyReply> {
  checkFormOrigin(request)
  const fields = readForm(request)
  const { token } = request.params
  const user = await signedInUser(pages, request)
  if (!user) return reply.redirect(pathOf(request), 303)
  if (!pages.tokens.verify(fields.token, ...joinForm(user, token)))
    return showInvitation(pages, request, reply, { status: 403, fault: 'The form has expired. Please try again.' })
  await countForm(pages, request)
  const actor = actorOf(request, {
    kind: 'session',
    credential_id: user.session_id,
    user_id: user.user_id,
    org_id: '',
  })
  try {
    await pages.context.sql.begin((tx) => join(tx, token, user.user_id, actor))
  } catch (error) {
    // The page is shown again with the current offer.
    if (!(error instanceof Problem) || error.status >= 500) throw error
    return showInvitation(pages, request, reply, { status: error.status })
  }
  return reply.redirect(pathOf(request), 303)
}

async function submitAccount(pages: Pages, request: Invited, reply: FastifyReply): Promise<FastifyReply> {
  checkFormOrigin(request)
  const { token, email = '', password = '', name = '' } = readForm(request)
  const typed = { email, name: name.slice(0, bounds.user_name) }
  if (!isOwnForm(pages.tokens, accountForm(request), token, request))
    return showInvitation(pages, request, reply, {
      status: 403,
      fault: 'The form has expired. Please try again.',
      typed,
    })
  try {
    await countForm(pages, request)
    const account = { ...readAccount({ email, password, name }), invitation: request.params.token }
    const { secret } = await signUp(pages.signing, account, signInFrom(request))
    setSessionCookie(reply, secret, pages.secure())
  } catch (error) {
    const { issues, ...fault } = accountErrors(error)
    return showInvitation(pages, request, reply, { ...fault, typed: { ...typed, issues } })
  }
  return reply.redirect(pathOf(request), 303)
}

function pathOf({ params: { token } }: Invited): string {
  return `/invite/${encodeURIComponent(token)}`
}

/** Forms are bound to the link by its hash, so that the secret appears only in the address. */
const hashed = (token: string): string => hashOf(token).toString('base64url')

function joinForm(user: SignedInUser, token: string): [form: string, ...bound: string[]] {
  return ['join', user.session_id, hashed(token)]
}

function joinToken({ tokens }: Pages, user: SignedInUser, token: string): string {
  return tokens.issue(...joinForm(user, token))
}

function accountForm({ params: { token } }: Invited): string {
  return `join with a new account ${hashed(token)}`
}
