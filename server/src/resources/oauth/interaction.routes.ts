import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type Provider from 'oidc-provider'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { answerWithPages, checkFormOrigin, formBytesMax, readForm } from '../../http/pages/forms.ts'
import { formTokens, type FormTokens } from '../../http/pages/form-token.ts'
import { sendPage } from '../../http/pages/page.ts'
import { findSignedInUser, type SignedInUser } from '../users/sessions/sessions.queries.ts'
import type { AuthorizationServer } from './provider/authorization-server.ts'
import { forwardToProvider } from './provider/provider-bridge.ts'
import { consentPage } from './consent-page.ts'
import { appGone, grantConsent } from './grant-consent.ts'
import {
  findClient,
  findConsent,
  findPublisher,
  isSignedInSince,
  isUnregistered,
  listMemberships,
  type OAuthClientRow,
} from './oauth.queries.ts'

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

/** An authorization that waits for the decision of its user. */
interface Waiting {
  server: AuthorizationServer
  interaction: Interaction
  client: OAuthClientRow
  scopes: string[]
  redirect_uri: string
  /** Path that completes it after the decision. */
  path: string
}

/** Pages on which users sign in and decide about an app's request (decisions O1, D76). */
export function interactionRoutes(
  app: FastifyInstance,
  context: Context,
  server: () => Promise<AuthorizationServer>,
): void {
  const tokens = formTokens(context.secrets)
  app.register(async (scope) => {
    answerWithPages(scope)
    scope.get<{ Params: { uid: string } }>('/oauth2/interaction/:uid', async (request, reply) =>
      showInteraction(context, tokens, await findWaiting(context, await server(), request, reply), request, reply),
    )
    scope.post<{ Params: { uid: string } }>(
      '/oauth2/interaction/:uid',
      { bodyLimit: formBytesMax },
      async (request, reply) =>
        submitDecision(context, tokens, await findWaiting(context, await server(), request, reply), request, reply),
    )
  })
}

/**
 * The authorization of a path, which must match the cookie of this browser. Throws 400 for another browser's or an
 * expired one.
 */
async function findWaiting(
  { sql }: Context,
  server: AuthorizationServer,
  request: FastifyRequest<{ Params: { uid: string } }>,
  reply: FastifyReply,
): Promise<Waiting> {
  const interaction = await server.provider.interactionDetails(request.raw, reply.raw)
  const client =
    interaction.uid === request.params.uid ? await findClient(sql, parameter(interaction, 'client_id')) : undefined
  if (!client) throw appGone()
  return {
    server,
    interaction,
    client,
    scopes: [...new Set(parameter(interaction, 'scope').split(' '))],
    redirect_uri: parameter(interaction, 'redirect_uri'),
    path: `/oauth2/interaction/${interaction.uid}`,
  }
}

async function showInteraction(
  context: Context,
  tokens: FormTokens,
  waiting: Waiting,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { sql } = context
  const { client, interaction, scopes, path } = waiting
  const user = await findSignedInUser(context.sql, request)
  if (!user) return reply.redirect(signInPath(waiting), 303)
  const prompts = parameter(interaction, 'prompt').split(' ')
  if (prompts.includes('login') && !(await isSignedInSince(sql, user.session_id, interaction.uid))) {
    return reply.redirect(`${signInPath(waiting)}&again=1`, 303)
  }

  const consent = await findConsent(sql, user.user_id, client.client_id)
  // A public app can be impersonated, so it always needs a new consent (decision D76).
  const remembered =
    client.secret_hash !== null &&
    !prompts.includes('consent') &&
    consent &&
    scopes.every((scope) => consent.scopes.includes(scope))
  if (remembered) return reply.redirect(await allow(waiting, user, consent.org_id, request, reply), 303)

  const organizations = await listMemberships(sql, user.user_id, client)
  if (organizations.length === 0 && isUnregistered(client)) throw onlyRegistered()
  const page = consentPage({
    action: path,
    token: tokens.issue('consent', user.session_id, interaction.uid),
    client,
    publisher: await findPublisher(sql, client, user.user_id),
    scopes,
    sends_to: waiting.redirect_uri,
    public_url: context.public_url(),
    resource: resourceOf(interaction),
    user,
    organizations,
    org_id: consent?.org_id ?? organizations.find(({ id }) => id === client.org_id)?.id,
    logout: { token: tokens.issue('logout', user.session_id), return_to: path },
  })
  return sendPage(reply, page)
}

async function submitDecision(
  context: Context,
  tokens: FormTokens,
  waiting: Waiting,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  checkFormOrigin(request)
  const { token, decision, org_id } = readForm(request)
  const user = await findSignedInUser(context.sql, request)
  if (!user || !tokens.verify(token, 'consent', user.session_id, waiting.interaction.uid)) {
    throw new Problem('insufficient_permissions', undefined, {
      message: 'The form has expired. Go back to the app and start again.',
    })
  }
  const onward =
    decision === 'allow'
      ? await allow(waiting, user, org_id ?? '', request, reply)
      : await deny(waiting, request, reply)
  // Responds directly with the redirect to the app. The browser was verified above.
  await forwardToProvider(request, reply, waiting.server, {
    cookies: waiting.server.resumeCookie(waiting.interaction.uid),
    method: 'GET',
    path: new URL(onward).pathname.slice(request.server.base_path.length),
  })
  return reply
}

/** Grants access and ends the authorization in one transaction. Returns where the browser goes next. */
async function allow(
  { server, interaction, client, scopes }: Waiting,
  user: SignedInUser,
  org_id: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string> {
  return server.store.transaction(async (tx) => {
    const grant_id = await grantConsent(tx, request, {
      ...{ user, client_id: client.client_id, org_id, scopes },
      resource: resourceOf(interaction),
    })
    return server.provider.interactionResult(request.raw, reply.raw, {
      login: { accountId: user.user_id, remember: false },
      consent: { grantId: grant_id },
    })
  })
}

async function deny({ server }: Waiting, request: FastifyRequest, reply: FastifyReply): Promise<string> {
  const refusal = { error: 'access_denied', error_description: 'the user did not allow it' }
  return server.provider.interactionResult(request.raw, reply.raw, refusal, { mergeWithLastSubmission: false })
}

function onlyRegistered(): Problem {
  return new Problem('insufficient_permissions', undefined, {
    message: 'Your organization allows only apps that an administrator has registered.',
  })
}

function signInPath({ interaction, path }: Waiting): string {
  const email = parameter(interaction, 'login_hint')
  return `/login?${new URLSearchParams({ return_to: path, ...(email === '' ? {} : { email }) })}`
}

/** The resource for which the app requests access; null if the request names none, which means the API. */
function resourceOf(interaction: Interaction): string | null {
  return parameter(interaction, 'resource') || null
}

/** A parameter of the authorization request; empty if absent. */
function parameter(interaction: Interaction, name: string): string {
  const value = interaction.params[name]
  return typeof value === 'string' ? value : ''
}
