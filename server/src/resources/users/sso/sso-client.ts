import * as oidc from 'openid-client'
import type { SsoConfig } from '../../../config/config-sso.ts'
import { egressFetch, type EgressFetch } from '../../../platform/egress/egress-fetch.ts'
import type { Egress } from '../../../platform/egress/safe-fetch.ts'
import { SsoFailure, ssoFailure } from './sso-failure.ts'
import { profileOf, type SsoProfile } from './sso-profile.ts'

/** Timeout of one response of a provider. */
const answer_ms = 10_000
/** Timeout of all requests to a provider while a browser waits. */
const whole_ms = 20_000
/** How long the provider's metadata is cached; its keys are read for every sign-in. */
const metadataLife_ms = 10 * 60_000

/** State, nonce and PKCE verifier to check a provider's response with; all of them secret. */
export interface SsoChecks {
  state: string
  nonce: string
  code_verifier: string
}

/** OpenID Connect client of identity providers. Both methods throw `SsoFailure`. */
export interface SsoClient {
  /** The URL at which a browser signs in at a provider, and the checks for the way back. */
  begin(provider: SsoConfig, redirect_uri: string, prompt?: string): Promise<{ url: string; checks: SsoChecks }>
  /**
   * The profile of the user who came back with `search`, the query string of the callback. Checks state, issuer, code,
   * PKCE, nonce, and the ID token with its signature.
   */
  finish(provider: SsoConfig, redirect_uri: string, search: string, checks: SsoChecks): Promise<SsoProfile>
}

/**
 * The client of all providers. They are contacted at the first sign-in, so that an unreachable one does not affect the
 * others. Every request goes through the egress guard, and no redirect is followed (decision D104).
 */
export function makeSsoClient(egress: Pick<Egress, 'open'>): SsoClient {
  const known = new Map<string, { metadata: Promise<oidc.ServerMetadata>; until_ms: number }>()

  /** Concurrent callers share one request; a failure is not cached. */
  const metadataOf = (provider: SsoConfig): Promise<oidc.ServerMetadata> => {
    const held = known.get(provider.name)
    if (held && held.until_ms > Date.now()) return held.metadata
    const metadata = discover(provider, guardedFetch(egress).fetch)
    const entry = { metadata, until_ms: Date.now() + metadataLife_ms }
    known.set(provider.name, entry)
    metadata.catch(() => {
      if (known.get(provider.name) === entry) known.delete(provider.name)
    })
    return metadata
  }

  return {
    async begin(provider, redirect_uri, prompt) {
      const metadata = await metadataOf(provider)
      const checks = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        code_verifier: oidc.randomPKCECodeVerifier(),
      }
      const url = oidc.buildAuthorizationUrl(configure(provider, metadata, guardedFetch(egress).fetch), {
        redirect_uri,
        scope: provider.scopes,
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(checks.code_verifier),
        code_challenge_method: 'S256',
        ...(prompt === undefined ? {} : { prompt }),
      })
      return { url: url.href, checks }
    },

    async finish(provider, redirect_uri, search, { state, nonce, code_verifier }) {
      const metadata = await metadataOf(provider)
      const asking = guardedFetch(egress)
      const configuration = configure(provider, metadata, asking.fetch)
      try {
        const tokens = await oidc.authorizationCodeGrant(configuration, new URL(redirect_uri + search), {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: code_verifier,
          idTokenExpected: true,
        })
        const claims = tokens.claims()
        if (!claims) throw new SsoFailure('unusable', 'the response has no ID token')
        const { groups_claim, group_roles } = provider
        const wanted = ['email', 'email_verified', 'name', ...(group_roles.size > 0 ? [groups_claim] : [])]
        const isComplete = wanted.every((name) => claims[name] !== undefined)
        // Many providers put few claims into the ID token (OpenID Core §5.4). The library compares the subjects.
        const more =
          isComplete || metadata.userinfo_endpoint === undefined
            ? undefined
            : await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub)
        return profileOf(claims, more, groups_claim)
      } catch (error) {
        throw ssoFailure(error, asking.isAsked())
      }
    },
  }
}

/** Reads a provider's metadata; throws if it is incomplete or of another issuer. */
async function discover(provider: SsoConfig, fetch: EgressFetch): Promise<oidc.ServerMetadata> {
  try {
    const found = await oidc.discovery(new URL(provider.issuer), provider.client_id, undefined, undefined, {
      [oidc.customFetch]: fetch,
      timeout: answer_ms / 1000,
      execute: isPlain(provider) ? [oidc.allowInsecureRequests] : [],
    })
    const metadata = found.serverMetadata()
    // The library lets some multi-tenant providers use another issuer name.
    if (new URL(metadata.issuer).href !== new URL(provider.issuer).href)
      throw new SsoFailure('unusable', `the provider calls itself ${JSON.stringify(metadata.issuer.slice(0, 200))}`)
    for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const)
      checkEndpoint(metadata, name, provider)
    return metadata
  } catch (error) {
    throw ssoFailure(error, true)
  }
}

function checkEndpoint(metadata: oidc.ServerMetadata, name: keyof oidc.ServerMetadata, provider: SsoConfig): void {
  const value = metadata[name]
  const url = typeof value === 'string' ? URL.parse(value) : null
  if (url && (url.protocol === 'https:' || (isPlain(provider) && url.protocol === 'http:'))) return
  throw new SsoFailure('unusable', `the metadata has no usable ${String(name)}`)
}

/** Made for every sign-in, because it caches the provider's keys. */
function configure(provider: SsoConfig, metadata: oidc.ServerMetadata, fetch: EgressFetch): oidc.Configuration {
  const { client_id, client_secret } = provider
  const methods = metadata.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
  const wanted = provider.client_authentication ?? (methods.includes('client_secret_basic') ? 'basic' : 'post')
  const authentication =
    wanted === 'basic' ? oidc.ClientSecretBasic(client_secret) : oidc.ClientSecretPost(client_secret)
  const configuration = new oidc.Configuration(metadata, client_id, undefined, authentication)
  configuration[oidc.customFetch] = fetch
  configuration.timeout = answer_ms / 1000
  oidc.enableNonRepudiationChecks(configuration)
  if (isPlain(provider)) oidc.allowInsecureRequests(configuration)
  return configuration
}

/** `fetch` through the egress guard for one sign-in, with a timeout for all its requests. */
function guardedFetch(egress: Pick<Egress, 'open'>): { fetch: EgressFetch; isAsked: () => boolean } {
  let isAsked = false
  const fetch = egressFetch(egress, {
    purpose: 'sso',
    timeout_ms: () => answer_ms,
    signal: AbortSignal.timeout(whole_ms),
  })
  return {
    fetch: (url, init) => {
      isAsked = true
      return fetch(url, init)
    },
    isAsked: () => isAsked,
  }
}

/** Whether the issuer uses plain HTTP on a loopback address, where traffic cannot be intercepted. */
function isPlain({ issuer }: SsoConfig): boolean {
  return issuer.startsWith('http:')
}
