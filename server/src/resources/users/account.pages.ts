import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '#contract/core/problems.ts'
import { recentSignIn_minutes } from '#contract/accounts/users.ts'
import { actorOf } from '../../http/access/actor.ts'
import { toProblem } from '../../http/errors.ts'
import { checkFormOrigin, formBytesMax, readForm } from '../../http/pages/forms.ts'
import { continuePage, sendPage } from '../../http/pages/page.ts'
import { isSessionRecent, type SignedInUser } from './sessions/sessions.queries.ts'
import { accountPage } from './account-page.ts'
import { listIdentities } from './sso/identities.queries.ts'
import { reauthenticate } from './reauthenticated-user.ts'
import { countForm, sentence, signedInUser, signInFrom } from './pages.ts'
import { unlinkIdentity } from './sso/sso-links.ts'
import { accountPath } from './sso/sso-pages.ts'
import { beginAt, providersOf, requireProvider, type Sso } from './sso/sso.ts'
import { findCredentials } from './users.queries.ts'

/**
 * The page where users connect and remove identity providers, without scripts. Forms carry a token bound to the
 * session.
 */
export function accountPages(scope: FastifyInstance, sso: Sso): void {
  const bodyLimit = formBytesMax
  scope.get(accountPath, async (request, reply) => {
    const user = await signedInUser(sso, request)
    return user ? showAccount(sso, user, reply) : toSignIn(reply)
  })
  scope.post(`${accountPath}/connect`, { bodyLimit }, (request, reply) =>
    submit(sso, request, reply, async (user, { provider: name, password }) => {
      const provider = requireProvider(sso, name)
      const { user_id, session_id } = user
      const owner = { user_id, session_id, current_password: password || undefined, during: 'identity_link' } as const
      await reauthenticate(sso.signing, owner, signInFrom(request))
      const { url, attempt } = await beginAt(sso, provider, { return_to: accountPath, link: { user_id, session_id } })
      sso.attempts.keep(reply, provider, attempt)
      return sendPage(reply, continuePage(url, provider.label))
    }),
  )
  scope.post(`${accountPath}/disconnect`, { bodyLimit }, (request, reply) =>
    submit(sso, request, reply, async ({ user_id, session_id }, { identity_id = '' }) => {
      const actor = { ...actorOf(request), actor: user_id, credential: { kind: 'session', id: session_id } as const }
      await unlinkIdentity(sso.context.sql, providersOf(sso), { user_id, identity_id }, actor)
      return reply.redirect(accountPath, 303)
    }),
  )
}

type Fields = ReturnType<typeof readForm>

/** Checks that a form belongs to this session, and shows the page again with the error if the action fails. */
async function submit(
  sso: Sso,
  request: FastifyRequest,
  reply: FastifyReply,
  work: (user: SignedInUser, fields: Fields) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  checkFormOrigin(request)
  const fields = readForm(request)
  const user = await signedInUser(sso, request)
  if (!user) return toSignIn(reply)
  if (!sso.tokens.verify(fields.token, 'account', user.session_id))
    return showAccount(sso, user, reply, { status: 403, fault: 'The form has expired. Please try again.' })
  try {
    await countForm(sso, request)
    return await work(user, fields)
  } catch (error) {
    const problem = toProblem(error)
    if (problem.status === 500) throw error
    return showAccount(sso, user, reply, { status: problem.status, fault: errorOf(problem) })
  }
}

async function showAccount(
  sso: Sso,
  user: SignedInUser,
  reply: FastifyReply,
  { status, fault }: { status?: number; fault?: string } = {},
): Promise<FastifyReply> {
  const { sql, config } = sso.context
  const { issuers, nameOf } = providersOf(sso)
  const rows = await listIdentities(sql, user.user_id)
  const credentials = await findCredentials(sql, user.user_id)
  const has_password = typeof credentials?.password_hash === 'string'
  const page = accountPage({
    name: user.name,
    email: user.email,
    has_password,
    identities: rows.map((identity) => ({
      ...identity,
      label: labelOf(sso, nameOf(identity.issuer)) ?? identity.issuer,
      isRemovable: has_password || rows.some(({ id, issuer }) => id !== identity.id && issuers.includes(issuer)),
    })),
    providers: config.sso.filter(({ name }) => !rows.some(({ issuer }) => nameOf(issuer) === name)),
    asksPassword: !(await isSessionRecent(sql, user.session_id, recentSignIn_minutes)),
    token: sso.tokens.issue('account', user.session_id),
    fault,
  })
  return sendPage(reply, page, status)
}

function labelOf({ context }: Sso, name: string | null): string | undefined {
  return context.config.sso.find((provider) => provider.name === name)?.label
}

function errorOf(problem: Problem): string {
  return problem.kind === 'validation_error' ? 'The password is wrong.' : sentence(problem)
}

function toSignIn(reply: FastifyReply): FastifyReply {
  return reply.redirect(`/login?${new URLSearchParams({ return_to: accountPath })}`, 303)
}
