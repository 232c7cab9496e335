import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import * as oidc from 'openid-client'
import { codeOf, Problem } from '#contract/core/problems.ts'
import { bounds } from '#contract/core/limits.ts'
import { roleAllows } from '#contract/core/scopes.ts'
import * as operations from '#contract/resources/credentials.ts'
import type { Context } from '../../context.ts'
import { readSecret, sealTokens } from '../../engine/credentials/access-tokens.ts'
import { IssuerFailure } from '../../engine/credentials/issuer-failure.ts'
import { clientMetadata, discoverMcpIssuer, type OwnClient } from '../../engine/credentials/mcp-issuer.ts'
import type { OAuthSettings } from '../../engine/credentials/oauth-settings.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { actorOf } from '../../http/access/actor.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { html } from '../../http/pages/html.ts'
import { answerBrowsersWithPages, errorPage } from '../../http/pages/forms.ts'
import { sendPage, type Page } from '../../http/pages/page.ts'
import { findSignedInUser, type SignedInUser } from '../users/sessions/sessions.queries.ts'
import {
  findAuthorization,
  insertAuthorization,
  takeAuthorization,
  type Authorization,
} from './authorizations.queries.ts'
import {
  connectOAuth,
  findClientSecret,
  findPlace,
  findRole,
  keepDiscovery,
  requireCredential,
  type CredentialRow,
} from './credentials.queries.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Maximum length of the return address of the sign-in (see `safePath`). */
const returnMax = 2000

/**
 * Routes that connect a credential with its issuer: authorization, callback, and client metadata. A state belongs to
 * the user who started and is valid once. The returning browser must be signed in as that user. Otherwise an attacker
 * could make another person authorize the attacker's credential, or connect a victim's credential with the attacker's
 * account.
 */
export function authorizationRoutes(
  app: FastifyInstance,
  http: HttpContext,
  context: Context,
  load: (loading: Loading) => Promise<CredentialRow>,
): void {
  handle(app, http, operations.authorizeCredential, {
    load,
    run: async ({ sql, loaded, principal, actor, waits }) => {
      const { id, project_id } = loaded
      if (loaded.oauth?.settings.grant !== 'authorization_code') throw needsNoPerson(loaded)
      waits()
      const { settings, client_secret } = await discovered(context, loaded, loaded.oauth.settings)
      const [state, verifier] = [oidc.randomState(), oidc.randomPKCECodeVerifier()]
      const attempt = { redirect_uri: redirectUri(context), state, verifier }
      const url = await context.issuers.authorizationUrl({ settings, client_secret }, attempt).catch(asProblem)
      const expires_at = await sql.begin(async (tx) => {
        await recordAudit(tx, actor, {
          action: 'credential.authorization_requested',
          target: id,
          project_id,
          detail: { issuer: new URL(url).origin },
        })
        return insertAuthorization(
          tx,
          state,
          {
            credential_id: id,
            user_id: principal.user_id,
            verifier: context.secrets.encrypt(secretLabels.verifier, verifier, id),
          },
          bounds.credential_authorization_seconds,
        )
      })
      return { url, expires_at }
    },
  })

  handle(app, http, operations.getCredentialClient, {
    run: async () => {
      const own = ownClient(context)
      return { client_id: own.client_id, ...clientMetadata(own) }
    },
  })

  app.register(async (scope) => {
    answerBrowsersWithPages(scope, context.onInternalError, (problem, { id }) =>
      errorPage('The credential is not connected', problem.message, { code: codeOf(problem), request_id: id }),
    )
    handle(scope, http, operations.finishCredentialAuthorization, {
      run: async ({ request, query: { state = '' } }) => {
        const user = await findSignedInUser(context.sql, request)
        if (!user) return { name: undefined }
        const taken = await takeAuthorization(context.sql, state, user.user_id)
        if (!taken) throw await refusal(context, request, user, state)
        return { name: await connect(context, request, user, { ...taken, state }) }
      },
      finish: async ({ request }, { body }, reply) => {
        const { name } = body as { name: string | undefined }
        answerReturn(request, reply, name)
        return undefined
      },
    })
  })
}

/** This service as an OAuth client of issuers. */
function ownClient({ public_url }: Pick<Context, 'public_url'>): OwnClient {
  const client_uri = public_url()
  return {
    client_uri,
    redirect_uri: `${client_uri}${operations.credentialCallbackPath}`,
    client_id: `${client_uri}${operations.credentialClientPath}`,
  }
}

function redirectUri(context: Pick<Context, 'public_url'>): string {
  return ownClient(context).redirect_uri
}

/** The OAuth settings of a credential. For an MCP server, the issuer is discovered first, once. */
async function discovered(
  context: Context,
  { id }: CredentialRow,
  settings: OAuthSettings,
): Promise<{ settings: OAuthSettings; client_secret: string | undefined }> {
  const { sql, secrets, egress } = context
  const { mcp_url } = settings
  const found =
    mcp_url === undefined
      ? undefined
      : await discoverMcpIssuer(egress, { ...settings, mcp_url }, ownClient(context)).catch(asProblem)
  if (!found) return { settings, client_secret: await clientSecret(context, id) }
  const given = settings.client_id !== undefined && settings.registered_for === undefined
  const client_secret =
    found.client_secret === undefined ? null : secrets.encrypt(secretLabels.client_secret, found.client_secret, id)
  const kept = await keepDiscovery(sql, id, settings, {
    settings: found.settings,
    client_secret: given ? undefined : client_secret,
  })
  if (!kept) throw changedMeanwhile(id)
  return given ? { settings: found.settings, client_secret: await clientSecret(context, id) } : found
}

/** The decrypted client secret; undefined for a public client. */
async function clientSecret({ sql, secrets }: Context, credential_id: string): Promise<string | undefined> {
  const client_secret = (await findClientSecret(sql, credential_id)) ?? null
  return readSecret(secrets, { credential_id, client_secret })
}

/**
 * Exchanges the code for tokens, and resumes tasks that wait for the credential. Returns the name of the credential.
 */
async function connect(
  context: Context,
  request: FastifyRequest,
  user: SignedInUser,
  { credential_id: id, verifier, state }: Authorization & { state: string },
): Promise<string> {
  const { sql, secrets, engine, issuers } = context
  const place = await findPlace(sql, id)
  const role = place && (await findRole(sql, place.org_id, user.user_id))
  if (!place || !role || !roleAllows(role, operations.authorizeCredential.scope))
    throw new Problem('insufficient_permissions', undefined, {
      message: 'You no longer have permission to connect this credential.',
    })
  const { project_id, org_id } = place
  const { oauth } = await requireCredential(sql, { id, project_id })
  if (!oauth) throw changedMeanwhile(id)
  const { settings } = oauth
  const client_secret = await clientSecret(context, id)
  const began_at = performance.now()
  const issued = await issuers
    .exchange(
      { settings, client_secret },
      {
        redirect_uri: redirectUri(context),
        state,
        verifier: secrets.decrypt(secretLabels.verifier, verifier, id),
        search: request.url.slice(request.url.indexOf('?')),
      },
    )
    .catch(asProblem)
  const { access_token, refresh_token, expires_in } = issued
  const tokens = sealTokens(secrets, id, { access_token, refresh_token })
  // The lifetime of the token counts from the request.
  const left = expires_in === undefined ? null : Math.max(0, expires_in - (performance.now() - began_at) / 1000)
  return sql.begin(async (tx) => {
    if (!(await connectOAuth(tx, id, settings, { tokens, expires_in: left }))) throw changedMeanwhile(id)
    const { name } = await requireCredential(tx, { id, project_id })
    const { user_id, session_id } = user
    const actor = actorOf(request, { kind: 'session', credential_id: session_id, user_id, org_id })
    await recordAudit(tx, actor, { action: 'credential.connected', target: id, project_id, detail: { name } })
    engine.credentialsChanged(tx)
    return name
  })
}

/** The problem of a refused callback. A state of another user may be an attack and is recorded in the audit log. */
async function refusal(
  { sql }: Context,
  request: FastifyRequest,
  { user_id, session_id }: SignedInUser,
  state: string,
): Promise<Problem> {
  const found = state === '' ? undefined : await findAuthorization(sql, state)
  if (!found || found.user_id === user_id) {
    const message =
      'The attempt has expired, is already complete, or was not started by you. Connect the credential again.'
    return new Problem(
      'validation_error',
      [{ field: 'state', message: 'does not belong to an open attempt', code: 'invalid_choice' }],
      { message },
    )
  }
  const { org_id, project_id, credential_id } = found
  const actor = actorOf(request, { kind: 'session', credential_id: session_id, user_id, org_id })
  await recordAudit(sql, actor, {
    action: 'credential.authorization_refused',
    target: credential_id,
    project_id,
    detail: { begun_by: found.user_id },
  })
  return new Problem('insufficient_permissions', undefined, {
    message: 'Another user started to connect this credential. Sign in as that user to finish.',
  })
}

function answerReturn(request: FastifyRequest, reply: FastifyReply, name: string | undefined): void {
  if (name !== undefined) return void sendPage(reply, connectedPage(name))
  if (request.url.length > returnMax)
    throw new Problem('insufficient_permissions', undefined, {
      message: 'You are not signed in. Sign in, and connect the credential again.',
    })
  void reply.redirect(`/login?${new URLSearchParams({ return_to: request.url })}`, 303)
}

function connectedPage(name: string): Page {
  return {
    title: 'Connected',
    content: html`
      <h1>Connected</h1>
      <p class="lead">The credential <strong>${name}</strong> is connected. Tasks that waited for it go on.</p>
      <p class="foot">You can close this page.</p>`,
  }
}

/** Converts an error of the issuer to a problem. */
function asProblem(error: unknown): never {
  if (!(error instanceof IssuerFailure)) throw error
  const { kind, code, message } = error
  if (kind === 'declined')
    throw new Problem('insufficient_permissions', undefined, {
      message: `You did not authorize the service (${code}).`,
      cause: error,
    })
  if (kind === 'mismatch')
    throw new Problem('validation_error', undefined, {
      message: 'The response of the issuer does not match the request. Connect the credential again.',
      cause: error,
    })
  throw new Problem(code === 'timed_out' ? 'gateway_timeout' : 'bad_gateway', undefined, { message, cause: error })
}

function needsNoPerson({ id, oauth }: CredentialRow): Problem {
  const message = oauth
    ? 'With the grant client_credentials the service gets tokens itself; no person is needed.'
    : 'A credential of type secret has no issuer. Only type oauth2 can be connected.'
  return new Problem('resource_conflict', { resource_type: 'credential', resource_id: id }, { message })
}

function changedMeanwhile(id: string): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'credential', resource_id: id },
    { message: 'The credential was changed or deleted in the meantime. Connect it again.' },
  )
}
