import type { OAuthClientMetadata, OAuthClientProvider } from '@modelcontextprotocol/client'
import type { EgressFetch } from '../../platform/egress/egress-fetch.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import { issuerFetch } from './issuer-client.ts'
import { issuerFailure, IssuerFailure } from './issuer-failure.ts'
import type { OAuthSettings } from './oauth-settings.ts'

/** This service as an OAuth client. */
export interface OwnClient {
  redirect_uri: string
  /** URL of its metadata document. An issuer that accepts such a URL as client id needs no registration. */
  client_id: string
  client_uri: string
}

/** The client metadata of this service (RFC 7591 §2): a public client with PKCE. */
export function clientMetadata({ redirect_uri, client_uri }: OwnClient) {
  return {
    client_name: 'Cadre',
    client_uri,
    redirect_uris: [redirect_uri],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
  } satisfies OAuthClientMetadata
}

/** An MCP server's issuer and this service's registration there, as needed before a person authorizes. */
export interface DiscoveredIssuer {
  settings: OAuthSettings
  /** The secret of a client that was registered just now, if the issuer issued one. */
  client_secret: string | undefined
}

/**
 * Finds the issuer of an MCP server by its protected resource metadata (RFC 9728) and the issuer's metadata (RFC 8414).
 * It also finds this service's client id there: the given one, else the URL of its metadata document if the issuer
 * accepts one, else a newly registered one (RFC 7591). Undefined, without any request, if all of that is known.
 * @throws IssuerFailure
 */
export async function discoverMcpIssuer(
  egress: Pick<Egress, 'open'>,
  settings: OAuthSettings & { mcp_url: string },
  own: OwnClient,
): Promise<DiscoveredIssuer | undefined> {
  const { issuer, client_id, registered_for, mcp_url } = settings
  const isRegistered = client_id !== undefined && (registered_for ?? own.redirect_uri) === own.redirect_uri
  if (issuer !== undefined && isRegistered) return undefined
  const { fetch, trail } = issuerFetch(egress)
  try {
    return await discover(fetch, settings, mcp_url, own)
  } catch (error) {
    const failure = issuerFailure(error, trail)
    throw failure.kind === 'unknown' ? new IssuerFailure('unavailable', failure.code, failure.message, error) : failure
  }
}

async function discover(
  fetch: EgressFetch,
  settings: OAuthSettings,
  mcp_url: string,
  own: OwnClient,
): Promise<DiscoveredIssuer> {
  const mcp = await import('@modelcontextprotocol/client')
  const challenge = await challengeOf(fetch, mcp_url)
  const { authorizationServerMetadata: metadata, resourceMetadata } = await mcp.discoverOAuthServerInfo(mcp_url, {
    ...(challenge.resourceMetadataUrl && { resourceMetadataUrl: challenge.resourceMetadataUrl }),
    fetchFn: fetch,
  })
  if (!metadata)
    throw new IssuerFailure('unavailable', 'no_metadata', `${mcp_url} names no authorization server for its tokens.`)
  // Throws if the metadata belong to another resource.
  const resource = await mcp.selectResourceURL(mcp_url, {} as OAuthClientProvider, resourceMetadata)
  const asked = challenge.scope?.split(' ').filter((scope) => scope !== '') ?? resourceMetadata?.scopes_supported ?? []
  const found: OAuthSettings = {
    ...settings,
    issuer: metadata.issuer,
    scopes: settings.scopes.length > 0 ? settings.scopes : asked,
    // As the server wrote it; a `URL` would add a trailing slash.
    resource: resource && resourceMetadata?.resource,
  }
  if (settings.client_id !== undefined && settings.registered_for === undefined)
    return { settings: found, client_secret: undefined }
  if (metadata.client_id_metadata_document_supported === true && mcp.isHttpsUrl(own.client_id))
    return {
      settings: { ...found, client_id: own.client_id, registered_for: own.redirect_uri },
      client_secret: undefined,
    }
  if (metadata.registration_endpoint === undefined)
    throw new IssuerFailure(
      'refused',
      'no_registration',
      `The issuer ${metadata.issuer} does not register clients. Register this service there, and set its client_id.`,
    )
  const registered = await mcp.registerClient(metadata.issuer, {
    metadata,
    clientMetadata: clientMetadata(own),
    fetchFn: fetch,
  })
  return {
    settings: { ...found, client_id: registered.client_id, registered_for: own.redirect_uri },
    client_secret: registered.client_secret,
  }
}

/**
 * The server's response to a request without a token: the location of its metadata, and the requested scopes (RFC 6750
 * §3).
 */
async function challengeOf(
  fetch: EgressFetch,
  mcp_url: string,
): Promise<{ resourceMetadataUrl?: URL; scope?: string }> {
  const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
  const response = await fetch(mcp_url, { headers: { accept: 'application/json, text/event-stream' } })
  // The body may be an endless stream.
  await response.body?.cancel()
  return response.status === 401 ? extractWWWAuthenticateParams(response) : {}
}
