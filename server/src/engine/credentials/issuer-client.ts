import * as oidc from 'openid-client'
import { egressFetch, type EgressFetch } from '../../platform/egress/egress-fetch.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import { issuerFailure, IssuerFailure, type Trail } from './issuer-failure.ts'
import type { OAuthSettings } from './oauth-settings.ts'

/** How long one answer of an issuer may take. */
const answer_ms = 10_000
/** How long everything may take that an issuer is asked for at a time; less than a renewal's lease. */
const whole_ms = 15_000
/** How long an issuer's metadata is taken for true. */
const metadataLife_ms = 10 * 60_000
/** Issuers whose metadata is remembered at most. */
const issuersMax = 1000

/** What an issuer gave. */
export interface IssuedTokens {
  access_token: string
  refresh_token: string | undefined
  /** Seconds from when it was asked; undefined where it does not say. */
  expires_in: number | undefined
}

/** Which client asks, and for what. */
export interface Asking {
  settings: OAuthSettings
  client_secret: string | undefined
}

/** What belongs to one authorization of a person. */
export interface Attempt {
  redirect_uri: string
  state: string
  /** PKCE's verifier (RFC 7636). */
  verifier: string
}

/** Speaks OAuth 2.0 with issuers. Everything throws `IssuerFailure`. */
export interface IssuerClient {
  /** Where a person goes to let this service in. */
  authorizationUrl(asking: Asking, attempt: Attempt): Promise<string>
  /** The tokens for the code that came back with `search`, the query string of the callback; its state and issuer are checked. */
  exchange(asking: Asking, attempt: Attempt & { search: string }): Promise<IssuedTokens>
  /** New tokens, for a refresh token or for the client alone. */
  renew(asking: Asking, refresh_token: string | undefined): Promise<IssuedTokens>
}

/**
 * The client of all issuers: the grants by openid-client, the metadata by the discovery of the MCP library, which knows both
 * RFC 8414 and OpenID Connect. Every request goes through the egress guard, and no redirect is followed (decision D104).
 */
export function makeIssuerClient(egress: Pick<Egress, 'open'>): IssuerClient {
  const known = new Map<string, { metadata: Promise<oidc.ServerMetadata>; until_ms: number }>()

  /** One request for all who ask at once; a failure is forgotten. */
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

  /** Asks for tokens: what fails before the token endpoint is asked changed nothing there. */
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
          `The issuer gives tokens of the type ${token_type}, not Bearer.`,
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

/** The guarded way out for one conversation with an issuer, with a bound of its whole time. */
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
    throw new IssuerFailure('refused', 'not_discovered', 'The issuer of the MCP server is not known yet: connect it.')
  return {
    issuer: new URL(token_endpoint).origin,
    token_endpoint,
    ...(authorization_endpoint && { authorization_endpoint }),
  }
}

/** The metadata of an issuer, which must call itself by the name that was given. */
async function discover(
  issuer: string,
  { fetch, trail }: ReturnType<typeof issuerFetch>,
): Promise<oidc.ServerMetadata> {
  // Loaded at first use: it is large.
  const { discoverAuthorizationServerMetadata, IssuerMismatchError } = await import('@modelcontextprotocol/client')
  try {
    const found = await discoverAuthorizationServerMetadata(issuer, { fetchFn: fetch })
    if (!found) throw new IssuerFailure('unavailable', 'no_metadata', `${issuer} publishes no metadata of an issuer.`)
    return found as oidc.ServerMetadata
  } catch (error) {
    if (error instanceof IssuerMismatchError)
      throw new IssuerFailure(
        'unavailable',
        'issuer_mismatch',
        `The issuer at ${issuer} calls itself otherwise.`,
        error,
      )
    const failure = issuerFailure(error, trail)
    // Nothing was asked for that could have been granted.
    throw failure.kind === 'unknown' ? new IssuerFailure('unavailable', failure.code, failure.message, error) : failure
  }
}

/** A browser is sent there: it must be a page, and PKCE must be understood where the issuer says what it understands. */
function checkAuthorization({ authorization_endpoint, code_challenge_methods_supported }: oidc.ServerMetadata): void {
  const url = URL.parse(authorization_endpoint ?? '')
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new IssuerFailure(
      'refused',
      'no_authorization_endpoint',
      'The issuer has no page where a person lets apps in.',
    )
  if (Array.isArray(code_challenge_methods_supported) && !code_challenge_methods_supported.includes('S256'))
    throw new IssuerFailure('refused', 'no_pkce', 'The issuer does not know PKCE with S256.')
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
      'This service is not registered at the issuer yet: connect it.',
    )
  const configuration = new oidc.Configuration(metadata, client_id, undefined, authentication(metadata, client_secret))
  configuration[oidc.customFetch] = fetch
  configuration.timeout = whole_ms / 1000
  // Which addresses may be reached without TLS is the egress guard's to say.
  oidc.allowInsecureRequests(configuration)
  return configuration
}

/** As the issuer takes it; where its metadata do not say, in the way that it must know (RFC 6749 §2.3.1). */
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

/** Without a known issuer there is nothing to compare its name with. */
function callbackUrl({ issuer }: OAuthSettings, redirect_uri: string, search: string): URL {
  const url = new URL(redirect_uri + search)
  if (issuer === undefined) url.searchParams.delete('iss')
  return url
}
