import { timingSafeEqual, type JsonWebKey } from 'node:crypto'
import Provider, {
  errors,
  type Client,
  type Configuration,
  type ErrorOut,
  type KoaContextWithOIDC,
  type ResourceServer,
} from 'oidc-provider'
import { scopes } from '#contract/core/scopes.ts'
import { userAgentOf } from '../../../http/access/user-agent.ts'
import { basePathOf } from '../../../http/connection/base-path.ts'
import { lifetimes } from './lifetimes.ts'
import { hashOf } from '../../../platform/crypto/hash-of.ts'
import type { OAuthStore } from './store.ts'

/** Options of the authorization server. */
export interface ProviderOptions {
  /** Its issuer URL (decision D84). */
  issuer: string
  store: OAuthStore
  signing_key: JsonWebKey
  /** Secrets for the cookies of an authorization: the first signs, all verify. */
  cookie_secrets: string[]
  /** Renders a request error that must not redirect. */
  renderError(ctx: KoaContextWithOIDC, out: ErrorOut): void
}

/** Format of user codes, with letters that are easy to distinguish and form no words (RFC 8628 §6.1). */
const userCodeMask = '****-****'

/** Names of the cookies of an authorization. */
export const oauthCookies = {
  session: 'cadre_oauth_session',
  interaction: 'cadre_oauth_interaction',
  resume: 'cadre_oauth_resume',
} as const

/**
 * OAuth 2.0 by oidc-provider without OpenID Connect (decision 0005): authorization code with PKCE, rotating refresh
 * tokens, revocation, device flow. The library implements the protocol; the service decides about users and consent.
 */
export function createProvider(options: ProviderOptions): Provider {
  const provider = new Provider(options.issuer, configuration(options))
  // Scheme, host and address come from the bridge, never from the client (provider-bridge.ts).
  provider.proxy = true
  provider.Client.prototype.compareClientSecret = function (this: Client, secret: string): boolean {
    return isSecretOf(this.clientSecret, secret)
  }
  return provider
}

/** Compares a secret with its stored SHA-256 in hexadecimal, in constant time. */
export function isSecretOf(stored: string | undefined, given: string): boolean {
  const [known, hash] = [Buffer.from(stored ?? '', 'hex'), hashOf(given)]
  return known.length === hash.length && timingSafeEqual(known, hash)
}

function configuration({ issuer, store, signing_key, cookie_secrets, renderError }: ProviderOptions): Configuration {
  const secure = issuer.startsWith('https:')
  const base_path = basePathOf(issuer)
  const off = { enabled: false }
  return {
    adapter: (kind) => store.adapter(kind),
    routes: {
      authorization: '/oauth2/authorize',
      token: '/oauth2/token',
      revocation: '/oauth2/revoke',
      device_authorization: '/oauth2/device',
      // Served by device.routes.ts; the library only returns its URL to devices.
      code_verification: '/device',
    },
    scopes: [...scopes],
    claims: {},
    responseTypes: ['code'],
    clientAuthMethods: ['client_secret_post', 'client_secret_basic', 'none'],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    // The library supports only S256 (decision D78).
    pkce: { required: (_ctx, client) => isPublic(client) },
    allowOmittingSingleRegisteredRedirectUri: false,
    extraParams: { state: requireState, scope: requireKnownScopes },
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    // Tokens live as long as their grant, independent of the browser session.
    expiresWithSession: async () => false,
    ttl: {
      AccessToken: lifetimes.access_token,
      AuthorizationCode: lifetimes.code,
      DeviceCode: lifetimes.device_code,
      RefreshToken: refreshTokenLife,
      Grant: lifetimes.grant,
      Interaction: lifetimes.interaction,
      Session: lifetimes.interaction,
    },
    // The grant lookup checks the user (store.ts), and this is called only with a valid grant.
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    // One grant per authorization, so that ending one does not affect another (decision O1).
    loadExistingGrant: async (ctx) => {
      const grant_id = ctx.oidc.result?.consent?.grantId
      return grant_id === undefined ? undefined : ctx.oidc.provider.Grant.find(grant_id)
    },
    // Revoking either token ends the grant (decision D83). A client can revoke only its own tokens.
    revokeGrantPolicy: () => true,
    interactions: { url: (_ctx, interaction) => `${base_path}/oauth2/interaction/${interaction.uid}` },
    features: {
      devInteractions: off,
      userinfo: off,
      rpInitiatedLogout: off,
      resourceIndicators: {
        enabled: true,
        defaultResource: (_ctx, _client, oneOf) => oneOf,
        useGrantedResource: async () => true,
        getResourceServerInfo: (ctx, resource) => {
          // A grant has one resource, which the user sees.
          if (Array.isArray(ctx.oidc.params?.resource)) throw new errors.InvalidTarget()
          return resourceServer(issuer, resource)
        },
      },
      dPoP: off,
      pushedAuthorizationRequests: off,
      deviceFlow: {
        enabled: true,
        charset: 'base-20',
        mask: userCodeMask,
        deviceInfo: (ctx) => ({ ip: ctx.ip, ua: userAgentOf(ctx) }),
      },
      revocation: { enabled: true, allowedPolicy: (_ctx, client, token) => token.clientId === client.clientId },
    },
    cookies: {
      keys: cookie_secrets,
      names: { ...oauthCookies },
      long: { signed: true, httpOnly: true, sameSite: 'lax', path: `${base_path}/oauth2`, secure },
      short: { signed: true, httpOnly: true, sameSite: 'lax', secure },
    },
    // The library requires a key although no ID token is issued (decision O5).
    jwks: { keys: [{ ...signing_key, use: 'sig', alg: 'ES256' }] },
    renderError,
    clientBasedCORS: () => false,
  }
}

/** A resource for tokens (RFC 8707): the API, or the MCP endpoint of all agents or of one. */
function resourceServer(issuer: string, resource: string): ResourceServer {
  const path = resource.startsWith(issuer) ? resource.slice(issuer.length).replace(/\/$/, '') : undefined
  if (path === undefined || !/^(|\/api\/v1|\/v1|\/mcp|\/mcp\/agents\/agent_[a-z0-9]{1,60})$/.test(path))
    throw new errors.InvalidTarget()
  return {
    scope: scopes.join(' '),
    audience: `${issuer}${path}`,
    accessTokenTTL: lifetimes.access_token,
    accessTokenFormat: 'opaque',
  }
}

/** Whether a client is public: it has no secret. */
export function isPublic(client: Client): boolean {
  return client.clientAuthMethod === 'none'
}

/** A refresh token never outlives its grant (decision D79). */
function refreshTokenLife(ctx: KoaContextWithOIDC): number {
  const grant_life = ctx.oidc.entities.Grant?.remainingTTL ?? lifetimes.refresh_token
  return Math.max(1, Math.min(lifetimes.refresh_token, grant_life))
}

function requireState({ oidc }: KoaContextWithOIDC, state: string | undefined): void {
  // A device has no browser redirect that could be forged.
  if (!state && oidc.route !== 'device_authorization')
    throw new errors.InvalidRequest("missing required parameter 'state'")
}

/**
 * Throws for unknown scopes. Reads the original parameter, because the library silently drops unknown scopes
 * (decision O3).
 */
function requireKnownScopes(ctx: KoaContextWithOIDC): void {
  const { scope: asked } = ctx.oidc.body ?? ctx.query
  if (typeof asked !== 'string' || asked === '') throw new errors.InvalidRequest("missing required parameter 'scope'")
  const unknown = asked.split(' ').filter((scope) => !(scopes as readonly string[]).includes(scope))
  if (unknown.length > 0) throw new errors.InvalidScope('unknown scope', unknown.join(' '))
}
