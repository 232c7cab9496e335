import * as oidc from 'openid-client'
import { egressFetch, type EgressFetch } from '../../platform/egress/egress-fetch.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import { issuerFailure, IssuerFailure, type Trail } from './issuer-failure.ts'
import type { OAuthSettings } from './oauth-settings.ts'

/** Maximum time of one response of an issuer. */
const answer_ms = 10_000
/** Maximum time of all requests of one operation; less than a renewal's lease. */
const whole_ms = 15_000
/** How long an issuer's metadata is cached. */
const metadataLife_ms = 10 * 60_000
/** Maximum number of cached issuers. */
const issuersMax = 1000

/** Tokens from an issuer. */
export interface IssuedTokens {
  access_token: string
  refresh_token: string | undefined
  /** Seconds from the request; undefined if the issuer does not say. */
  expires_in: number | undefined
}

/** The client of a request to an issuer, and the settings of the credential. */
export interface Asking {
  settings: OAuthSettings
  client_secret: string | undefined
}

/** The parameters of one authorization by a person. */
export interface Attempt {
  redirect_uri: string
  state: string
  /** The code verifier of PKCE (RFC 7636). */
  verifier: string
}

/** An OAuth 2.0 client of issuers. All functions throw `IssuerFailure`. */
export interface IssuerClient {
  /** The URL at which a person authorizes this service. */
  authorizationUrl(asking: Asking, attempt: Attempt): Promise<string>
  /**
   * Exchanges an authorization code for tokens. `search` is the query string of the callback; its state and issuer are
   * checked.
   */
  exchange(asking: Asking, attempt: Attempt & { search: string }): Promise<IssuedTokens>
  /** Requests new tokens with a refresh token, or with the client's credentials alone. */
  renew(asking: Asking, refresh_token: string | undefined): Promise<IssuedTokens>
}

/**
 * The client of all issuers. openid-client implements the grants. The MCP library discovers the metadata, because it
 * knows both RFC 8414 and OpenID Connect. Every request goes through the egress guard, and no redirect is followed
 * (decision D104).
 */
export function makeIssuerClient(egress: Pick<Egress, 'open'>): IssuerClient {
  const known = new Map<string, { metadata: Promise<oidc.ServerMetadata>; until_ms: number }>()

  /** Concurrent callers share one request; a failure is not cached. */
  const discovered = (issuer: string): Promise<oidc.ServerMetadata> => {
    const held = known.get(issuer)
    if (held && held.until_ms > Date.now()) return held.metadata
    const metadata = discover(issuer, issuerFetch(egress))
    const entry = { metadata, until_ms: Date.now() + metadataLife_ms }
    if (known.size >= issuersMax) known.clear()
    known.set(issuer, entry)
    metadata.catch(() => {
      if (known.get(issuer) === entry) known.delete(issuer)
    })
    return metadata
  }

  /** Requests tokens. A failure before the request to the token endpoint changed nothing there. */
  const grant = async (
    asking: Asking,
    ask: (configuration: oidc.Configuration) => Promise<oidc.TokenEndpointResponse>,
  ): Promise<IssuedTokens> => {
    const metadata = await metadataOf(asking.settings, discovered)
    const { fetch, trail } = issuerFetch(egress)
    try {
      const { access_token, refresh_token, expires_in, token_type } = await ask(configure(asking, metadata, fetch))
      if (token_type !== 'bearer')
        throw new IssuerFailure(
          'refused',
          'token_type',
          `The issuer issued a token of type ${token_type}; Bearer is required.`,
        )
      return { access_token, refresh_token, expires_in }
    } catch (error) {
      throw issuerFailure(error, trail)
    }
  }

  return {
    async authorizationUrl(asking, { redirect_uri, state, verifier }) {
      const { settings } = asking
      const metadata = await metadataOf(settings, discovered)
      checkAuthorization(metadata)
      const url = oidc.buildAuthorizationUrl(configure(asking, metadata, issuerFetch(egress).fetch), {
        redirect_uri,
        state,
        code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        ...askedFor(settings),
      })
      return url.href
    },

    exchange: (asking, { redirect_uri, search, state, verifier }) =>
      grant(asking, (configuration) =>
        oidc.authorizationCodeGrant(
          configuration,
          callbackUrl(asking.settings, redirect_uri, search),
          { expectedState: state, pkceCodeVerifier: verifier },
          resourceOf(asking.settings),
        ),
      ),

    renew: (asking, refresh_token) =>
      grant(asking, (configuration) =>
        refresh_token === undefined
          ? oidc.clientCredentialsGrant(configuration, askedFor(asking.settings))
          : oidc.refreshTokenGrant(configuration, refresh_token, resourceOf(asking.settings)),
      ),
  }
}

/** A guarded `fetch` for one operation with an issuer, with a maximum total time. */
export function issuerFetch(egress: Pick<Egress, 'open'>): { fetch: EgressFetch; trail: Trail } {
  const trail: Trail = { isAsked: false, status: undefined }
  const fetch = egressFetch(egress, {
    purpose: 'issuer',
    timeout_ms: () => answer_ms,
    signal: AbortSignal.timeout(whole_ms),
  })
  return {
    trail,
    async fetch(url, init) {
      trail.isAsked = true
      trail.status = undefined
      const response = await fetch(url, init)
      trail.status = response.status
      return response
    },
  }
}

async function metadataOf(
  { issuer, authorization_endpoint, token_endpoint }: OAuthSettings,
  discovered: (issuer: string) => Promise<oidc.ServerMetadata>,
): Promise<oidc.ServerMetadata> {
  if (issuer !== undefined) return discovered(issuer)
  if (token_endpoint === undefined)
    throw new IssuerFailure(
      'refused',
      'not_discovered',
      'The issuer of the MCP server is not known yet. Connect the credential.',
    )
  return {
    issuer: new URL(token_endpoint).origin,
    token_endpoint,
    ...(authorization_endpoint && { authorization_endpoint }),
  }
}

/** Discovers the metadata of an issuer, which must name itself by the given URL. */
async function discover(
  issuer: string,
  { fetch, trail }: ReturnType<typeof issuerFetch>,
): Promise<oidc.ServerMetadata> {
  // Loaded at first use, because it is large.
  const { discoverAuthorizationServerMetadata, IssuerMismatchError } = await import('@modelcontextprotocol/client')
  try {
    const found = await discoverAuthorizationServerMetadata(issuer, { fetchFn: fetch })
    if (!found)
      throw new IssuerFailure(
        'unavailable',
        'no_metadata',
        `${issuer} publishes no OAuth metadata. Check the issuer's URL.`,
      )
    return found as oidc.ServerMetadata
  } catch (error) {
    if (error instanceof IssuerMismatchError)
      throw new IssuerFailure(
        'unavailable',
        'issuer_mismatch',
        `The metadata at ${issuer} names another issuer. Check the issuer's URL.`,
        error,
      )
    const failure = issuerFailure(error, trail)
    // Discovery has no effects, so it can always be repeated.
    throw failure.kind === 'unknown' ? new IssuerFailure('unavailable', failure.code, failure.message, error) : failure
  }
}

/**
 * Checks the authorization endpoint: a browser is sent there, so it must be a web page, and PKCE must be supported if
 * the issuer lists its methods.
 */
function checkAuthorization({ authorization_endpoint, code_challenge_methods_supported }: oidc.ServerMetadata): void {
  const url = URL.parse(authorization_endpoint ?? '')
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new IssuerFailure(
      'refused',
      'no_authorization_endpoint',
      'The issuer has no authorization endpoint for browsers.',
    )
  if (Array.isArray(code_challenge_methods_supported) && !code_challenge_methods_supported.includes('S256'))
    throw new IssuerFailure('refused', 'no_pkce', 'The issuer does not support PKCE with S256.')
}

function configure(
  { settings: { client_id }, client_secret }: Asking,
  metadata: oidc.ServerMetadata,
  fetch: EgressFetch,
): oidc.Configuration {
  if (client_id === undefined)
    throw new IssuerFailure(
      'refused',
      'not_registered',
      'This service is not registered with the issuer yet. Connect the credential.',
    )
  const configuration = new oidc.Configuration(metadata, client_id, undefined, authentication(metadata, client_secret))
  configuration[oidc.customFetch] = fetch
  configuration.timeout = whole_ms / 1000
  // The egress guard decides which addresses may be reached without TLS.
  oidc.allowInsecureRequests(configuration)
  return configuration
}

/**
 * The client's authentication as the issuer supports it; by default Basic, which every issuer must support (RFC 6749
 * §2.3.1).
 */
function authentication(metadata: oidc.ServerMetadata, client_secret: string | undefined): oidc.ClientAuth {
  if (client_secret === undefined) return oidc.None()
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  return methods.includes('client_secret_basic')
    ? oidc.ClientSecretBasic(client_secret)
    : oidc.ClientSecretPost(client_secret)
}

function askedFor(settings: OAuthSettings): Record<string, string> {
  return { ...(settings.scopes.length > 0 && { scope: settings.scopes.join(' ') }), ...resourceOf(settings) }
}

function resourceOf({ resource }: OAuthSettings): Record<string, string> {
  return resource === undefined ? {} : { resource }
}

/** Without a known issuer, there is no name to compare `iss` with. */
function callbackUrl({ issuer }: OAuthSettings, redirect_uri: string, search: string): URL {
  const url = new URL(redirect_uri + search)
  if (issuer === undefined) url.searchParams.delete('iss')
  return url
}
