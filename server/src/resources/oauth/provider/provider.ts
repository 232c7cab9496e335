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

/** What the authorization server is made of. */
export interface ProviderOptions {
  /** The address under which clients know it (decision D84). */
  issuer: string
  store: OAuthStore
  signing_key: JsonWebKey
  /** The first signs the cookies of an authorization, all verify them. */
  cookie_secrets: string[]
  /** Answers a fault that must not redirect: JSON, or a page for a person. */
  renderError(ctx: KoaContextWithOIDC, out: ErrorOut): void
}

/** What devices show: letters that are not mistaken for one another and make no words (RFC 8628 §6.1). */
const userCodeMask = '****-****'

/** Names of the cookies that carry an authorization from its beginning to its end, and nothing else. */
export const oauthCookies = {
  session: 'cadre_oauth_session',
  interaction: 'cadre_oauth_interaction',
  resume: 'cadre_oauth_resume',
} as const

/**
 * OAuth 2.0 by oidc-provider, every feature of OpenID Connect off (decision 0005): authorization code with PKCE, refresh
 * tokens that rotate, revocation, devices without a browser. It decides the protocol; who the user is and what was consented is ours.
 */
export function createProvider(options: ProviderOptions): Provider {
  const provider = new Provider(options.issuer, configuration(options))
  // The bridge tells it scheme, host and address, never the client (hand-over.ts).
  provider.proxy = true
  provider.Client.prototype.compareClientSecret = function (this: Client, secret: string): boolean {
    return isSecretOf(this.clientSecret, secret)
  }
  return provider
}

/** Whether a client gave its secret, of which its SHA-256 is kept as hex; in a time that does not tell how much of it is right. */
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
      // Our own page (device.routes.ts): the library only tells devices where it is.
      code_verification: '/device',
    },
    scopes: [...scopes],
    claims: {},
    responseTypes: ['code'],
    clientAuthMethods: ['client_secret_post', 'client_secret_basic', 'none'],
    clientDefaults: { id_token_signed_response_alg: 'ES256' },
    // S256 is the only method that the library knows (decision D78).
    pkce: { required: (_ctx, client) => isPublic(client) },
    allowOmittingSingleRegisteredRedirectUri: false,
    extraParams: { state: requireState, scope: requireKnownScopes },
    rotateRefreshToken: true,
    issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    // Tokens live as long as their grant, whatever becomes of the browser that began it.
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
    // The grant says whether its user is still there (store.ts), and a grant is there whenever this is asked.
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    // One grant an authorization, so that ending one never touches another (decision O1).
    loadExistingGrant: async (ctx) => {
      const grant_id = ctx.oidc.result?.consent?.grantId
      return grant_id === undefined ? undefined : ctx.oidc.provider.Grant.find(grant_id)
    },
    // Revoking either token ends the grant (decision D83); only the client's own are touched.
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
        getResourceServerInfo: (_ctx, resource) => resourceServer(issuer, resource),
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
    // Demanded by the library although no ID token is ever issued (decision O5).
    jwks: { keys: [{ ...signing_key, use: 'sig', alg: 'ES256' }] },
    renderError,
    clientBasedCORS: () => false,
  }
}

/** A resource of ours that a token may be asked for (RFC 8707): the API, or the MCP endpoint of all or of one agent. */
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

/** Whether a client cannot keep a secret. */
export function isPublic(client: Client): boolean {
  return client.clientAuthMethod === 'none'
}

/** A refresh token never outlives its grant (decision D79). */
function refreshTokenLife(ctx: KoaContextWithOIDC): number {
  const grant_life = ctx.oidc.entities.Grant?.remainingTTL ?? lifetimes.refresh_token
  return Math.max(1, Math.min(lifetimes.refresh_token, grant_life))
}

function requireState({ oidc }: KoaContextWithOIDC, state: string | undefined): void {
  // A device has no browser whose answer could be forged.
  if (!state && oidc.route !== 'device_authorization')
    throw new errors.InvalidRequest("missing required parameter 'state'")
}

/** Reads what was sent: by now the library has silently dropped the scopes it does not know (decision O3). */
function requireKnownScopes(ctx: KoaContextWithOIDC): void {
  const { scope: asked } = ctx.oidc.body ?? ctx.query
  if (typeof asked !== 'string' || asked === '') throw new errors.InvalidRequest("missing required parameter 'scope'")
  const unknown = asked.split(' ').filter((scope) => !(scopes as readonly string[]).includes(scope))
  if (unknown.length > 0) throw new errors.InvalidScope('unknown scope', unknown.join(' '))
}
