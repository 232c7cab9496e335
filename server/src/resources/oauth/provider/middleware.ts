import { EventEmitter } from 'node:events'
import type { Logger } from 'pino'
import type Provider from 'oidc-provider'
import type { KoaContextWithOIDC } from 'oidc-provider'
import type { Problem } from '#contract/core/problems.ts'
import { scopes } from '#contract/core/scopes.ts'
import { recordAudit } from '../../../events/audit/audit.ts'
import { emit } from '../../../events/outbox.ts'
import { toProblem } from '../../../http/errors.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { renderFailure } from './oauth-errors.ts'
import { corsHeaders, providerRequestOf, type ProviderRequest } from './provider-bridge.ts'
import { touchGrant, type GrantOwner } from '../oauth.queries.ts'
import { oauthCookies } from './provider.ts'
import type { OAuthStore } from './store.ts'

/** Called for every response with status 500 if the grant is known. */
export type TellOwner = (problem: Problem, grant_id: string, request_id: string) => void

/**
 * Middleware around the library: one transaction per token or revoke request, audit entries for ended grants, errors
 * in the service's format, and the few responses that differ from the library's.
 */
export function surround(
  provider: Provider,
  { store, log, tellOwner, registers }: { store: OAuthStore; log: Logger; tellOwner: TellOwner; registers: boolean },
): void {
  provider.on('server_error', (ctx, error) => {
    providerRequestOf(ctx.req).failure = error
  })
  // Koa emits this event if a response is cut off; its types lack the event.
  EventEmitter.prototype.on.call(provider, 'error', (error: unknown) => {
    log.warn({ err: error }, 'a response of the authorization server could not be sent')
  })

  provider.use(async (ctx, next) => {
    const providerRequest = providerRequestOf(ctx.req)
    try {
      if (ctx.method === 'POST') await inTransaction(store, ctx as KoaContextWithOIDC, providerRequest, next)
      else await next()
    } catch (error) {
      providerRequest.failure = error
    }
    if (providerRequest.failure !== undefined) answerFailure(ctx as KoaContextWithOIDC, providerRequest, log, tellOwner)
    shapeAnswer(ctx as KoaContextWithOIDC, providerRequest, registers)
  })
}

/** Rolls a transaction back and keeps the response of the library. */
class RolledBack extends Error {}

/**
 * Runs a token or revoke request in one transaction. The library responds only after this resolves, so nothing is
 * returned before it is durable; if it fails after it has consumed a token, the token is unused again. A refusal
 * (4xx) commits, because the end of a grant whose token was used twice must persist.
 */
async function inTransaction(
  store: OAuthStore,
  ctx: KoaContextWithOIDC,
  providerRequest: ProviderRequest,
  next: () => Promise<unknown>,
): Promise<void> {
  try {
    await store.transaction(async (tx, ended) => {
      await next()
      if (ctx.status >= 500) throw new RolledBack()
      const grant_id = ctx.oidc?.entities.Grant?.jti
      if (ctx.status === 200 && ctx.oidc?.route === 'token' && grant_id !== undefined)
        await touchGrant(tx, grant_id, providerRequest)
      for (const grant of ended) await recordEnd(tx, grant, ctx, providerRequest)
    })
  } catch (error) {
    if (!(error instanceof RolledBack)) throw error
  }
}

/** Records the end of a grant: on request of its app, or because one of its tokens was used twice. */
async function recordEnd(
  tx: Sql,
  grant: GrantOwner,
  ctx: KoaContextWithOIDC,
  providerRequest: ProviderRequest,
): Promise<void> {
  const { request_id, ip, user_agent } = providerRequest
  const reused = ctx.oidc.route === 'token'
  const reason = !reused
    ? 'revoked_by_client'
    : ctx.oidc.params?.grant_type === 'refresh_token'
      ? 'refresh_token_reused'
      : 'code_replayed'
  // An app authenticates with its own secret, not with a credential of a user.
  const app = { org_id: grant.org_id, actor: grant.client_id, credential: null, ip, user_agent, request_id }
  await recordAudit(tx, app, {
    action: 'oauth_grant.revoked',
    target: grant.id,
    detail: { reason, user_id: grant.user_id },
  })
  if (!reused) return
  await emit(
    tx,
    'error.occurred',
    { org_id: grant.org_id },
    {
      error: {
        code: reason,
        message: 'A token of an OAuth app was used twice and may have been stolen. Its access has been revoked.',
        severity: 'high',
        affected_resources: [grant.id, grant.client_id],
      },
      user_id: grant.user_id,
      request_id,
    },
  )
}

/** Renders an internal error. A redirect with an error stays unchanged. */
function answerFailure(
  ctx: KoaContextWithOIDC,
  providerRequest: ProviderRequest,
  log: Logger,
  tellOwner: TellOwner,
): void {
  const problem = toProblem(providerRequest.failure)
  const grant_id = ctx.oidc?.entities.Grant?.jti
  if (problem.status === 500 && grant_id !== undefined) tellOwner(problem, grant_id, providerRequest.request_id)
  log.error(
    { err: problem.cause ?? problem, request_id: providerRequest.request_id, code: problem.kind },
    'request failed',
  )
  if (ctx.status < 300 || ctx.status >= 400) renderFailure(ctx, problem)
}

function shapeAnswer(ctx: KoaContextWithOIDC, providerRequest: ProviderRequest, registers: boolean): void {
  ctx.set('x-response-time', `${Math.round(performance.now() - providerRequest.started_at)}ms`)
  // The CORS rule of the whole service applies, not that of the library (decision D18).
  for (const name of corsHeaders) ctx.remove(name)
  ctx.set(providerRequest.cors)
  dropSessionCookie(ctx)
  answerInQuery(ctx)
  if (ctx.status !== 200) return
  if (ctx.oidc?.route === 'revocation') ctx.body = { message: 'Token revoked successfully' }
  if (ctx.oidc?.route === 'discovery') ctx.body = plainOAuth(ctx.body as Record<string, unknown>, registers)
}

/**
 * Moves errors to the query of the redirect URI for every response type (RFC 6749 §3.1.1, §4.1.2.1). The library uses
 * the fragment for types of the implicit grant, which is not supported.
 */
function answerInQuery(ctx: KoaContextWithOIDC): void {
  const target = URL.parse(ctx.response.get('location'))
  if (!target?.hash.startsWith('#error=') || ctx.query.response_mode !== undefined) return
  for (const [name, value] of new URLSearchParams(target.hash.slice(1))) target.searchParams.append(name, value)
  target.hash = ''
  ctx.redirect(target.href)
}

/** Removes the cookie of the library's session, which is not stored (store.ts). */
function dropSessionCookie(ctx: KoaContextWithOIDC): void {
  const cookies = [ctx.res.getHeader('set-cookie') ?? []].flat().map(String)
  const stored = cookies.filter(
    (cookie) => !cookie.startsWith(`${oauthCookies.session}=`) && !cookie.startsWith(`${oauthCookies.session}.sig=`),
  )
  if (stored.length > 0) ctx.res.setHeader('set-cookie', stored)
  else ctx.res.removeHeader('set-cookie')
}

/** Members of the metadata that belong to OpenID Connect or to disabled features. */
const notOAuth = new Set([
  'acr_values_supported',
  'claims_parameter_supported',
  'claims_supported',
  'claim_types_supported',
  'jwks_uri',
  'subject_types_supported',
  'id_token_signing_alg_values_supported',
  'request_uri_parameter_supported',
  'request_parameter_supported',
  'token_endpoint_auth_signing_alg_values_supported',
  'revocation_endpoint_auth_signing_alg_values_supported',
])

/** Metadata of RFC 8414, without the rest (decision D84). */
function plainOAuth(metadata: Record<string, unknown>, registers: boolean): Record<string, unknown> {
  return {
    ...Object.fromEntries(Object.entries(metadata).filter(([name]) => !notOAuth.has(name))),
    scopes_supported: scopes,
    response_modes_supported: ['query'],
    client_id_metadata_document_supported: true,
    ...(registers && { registration_endpoint: `${String(metadata.issuer)}/oauth2/register` }),
    revocation_endpoint_auth_methods_supported: metadata.token_endpoint_auth_methods_supported,
    service_documentation: `${String(metadata.issuer)}/api/v1/docs`,
  }
}
