import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { answerWithPages, checkFormOrigin, formBytesMax, readForm } from '../../http/pages/forms.ts'
import { formTokens, type FormTokens } from '../../http/pages/form-token.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { sendPage } from '../../http/pages/page.ts'
import { addressSubject, countSubject } from '../../http/access/rate-limit.ts'
import { findSignedInUser, type SignedInUser } from '../users/sessions/sessions.queries.ts'
import type { AuthorizationServer } from './provider/authorization-server.ts'
import { consentPage } from './consent-page.ts'
import { deviceCodePage, deviceDonePage } from './device-page.ts'
import { decideDevice, findWaitingDevice, normalizedUserCode, type WaitingDevice } from './device.queries.ts'
import { grantConsent } from './grant-consent.ts'
import { findClient, findPublisher, listMemberships, type OAuthClientRow } from './oauth.queries.ts'

/** A waiting device with its app, for the pages. */
interface Shown {
  device: WaitingDevice
  client: OAuthClientRow
  user: SignedInUser
  /** The code in the form that the device shows. */
  user_code: string
}

const expiredText =
  'No device is waiting with this code. A code works once, for ten minutes. Check the code on your device.'

/**
 * Routes on which a person authorizes a device without a browser (RFC 8628 §3.3), by typing its code or following its
 * link. Every lookup of a code is rate limited per IP address, so that codes cannot be guessed.
 */
export function deviceRoutes(
  app: FastifyInstance,
  http: HttpContext,
  context: Context,
  server: () => Promise<AuthorizationServer>,
): void {
  const tokens = formTokens(context.secrets)
  const count = (request: FastifyRequest): Promise<unknown> =>
    countSubject(http.authentication.sql, http.authentication.rates, 'oauth.authorize', addressSubject(request.ip))
  app.register(async (scope) => {
    answerWithPages(scope)
    scope.get('/device', async (request, reply) => {
      await count(request)
      return showDevice(context, tokens, request, reply)
    })
    scope.post('/device', { bodyLimit: formBytesMax }, async (request, reply) => {
      checkFormOrigin(request)
      await count(request)
      return submitDecision(context, await server(), tokens, request, reply)
    })
  })
}

async function showDevice(
  context: Context,
  tokens: FormTokens,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { user_code } = request.query as { user_code?: unknown }
  const typed = typeof user_code === 'string' ? user_code.slice(0, 40) : undefined
  const user = await findSignedInUser(context.sql, request)
  const public_url = context.public_url()
  const service = new URL(public_url).host
  if (!user) {
    const return_to = typed === undefined ? '/device' : `/device?${new URLSearchParams({ user_code: typed })}`
    return reply.redirect(`/login?${new URLSearchParams({ return_to })}`, 303)
  }
  if (typed === undefined) return sendPage(reply, deviceCodePage({ service }))
  const shown = await findShown(context, user, typed)
  if (!shown) return sendPage(reply, deviceCodePage({ service, typed, fault: expiredText }), 400)

  const { client, device } = shown
  const organizations = await listMemberships(context.sql, user.user_id, client)
  const page = consentPage({
    action: '/device',
    token: tokens.issue('device', user.session_id, shown.user_code),
    fields: { user_code: shown.user_code },
    client,
    publisher: await findPublisher(context.sql, client, user.user_id),
    scopes: device.scopes,
    sends_to: { ...device, user_code: shown.user_code },
    public_url,
    resource: device.resource,
    user,
    organizations,
    org_id: organizations.find(({ id }) => id === client.org_id)?.id,
    logout: {
      token: tokens.issue('logout', user.session_id),
      return_to: `/device?${new URLSearchParams({ user_code: shown.user_code })}`,
    },
  })
  return sendPage(reply, page)
}

async function submitDecision(
  context: Context,
  { store }: AuthorizationServer,
  tokens: FormTokens,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { token, decision, org_id, user_code = '' } = readForm(request)
  const user = await findSignedInUser(context.sql, request)
  if (!user || !tokens.verify(token, 'device', user.session_id, user_code)) {
    throw new Problem('insufficient_permissions', undefined, {
      message: 'The form has expired. Type the code of your device again.',
    })
  }
  const shown = await findShown(context, user, user_code)
  if (!shown) throw new Problem('validation_error', undefined, { message: expiredText })
  const isAllowed = decision === 'allow'
  await store.transaction(async (tx) => {
    const { client_id } = shown.client
    const { scopes, resource } = shown.device
    const decided = isAllowed
      ? {
          grant_id: await grantConsent(tx, request, { user, client_id, org_id: org_id ?? '', scopes, resource }),
          ...user,
          scopes,
          resource,
        }
      : 'denied'
    // A concurrent decision was committed first, so this grant is rolled back.
    if (!(await decideDevice(tx, normalizedUserCode(user_code), decided)))
      throw new Problem('validation_error', undefined, { message: expiredText })
  })
  return sendPage(reply, deviceDonePage(shown.client.name, isAllowed))
}

async function findShown({ sql }: Context, user: SignedInUser, typed: string): Promise<Shown | undefined> {
  const code = normalizedUserCode(typed)
  const device = await findWaitingDevice(sql, code)
  const client = device && (await findClient(sql, device.client_id))
  return client && { device, client, user, user_code: `${code.slice(0, 4)}-${code.slice(4)}` }
}
