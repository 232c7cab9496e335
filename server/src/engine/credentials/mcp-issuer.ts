import type { OAuthClientMetadata, OAuthClientProvider } from '@modelcontextprotocol/client'
import type { EgressFetch } from '../../platform/egress/egress-fetch.ts'
import type { Egress } from '../../platform/egress/safe-fetch.ts'
import { issuerFetch } from './issuer-client.ts'
import { issuerFailure, IssuerFailure } from './issuer-failure.ts'
import type { OAuthSettings } from './oauth-settings.ts'

/** This service as an OAuth client of others. */
export interface OwnClient {
  redirect_uri: string
  /** Where its metadata are; an issuer that takes such a document as an identifier needs no registration. */
  client_id: string
  client_uri: string
}

/** What this service is to issuers (RFC 7591 §2): a public client, whose codes PKCE protects. */
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

/** What there is to know of an MCP server's issuer before a person is sent there. */
export interface DiscoveredIssuer {
  settings: OAuthSettings
  /** Of a client that was registered just now, where the issuer gave it one. */
  client_secret: string | undefined
}

/**
 * Finds the issuer of an MCP server, by its protected resource metadata (RFC 9728) and the issuer's own (RFC 8414), and this
 * service's identifier there: the one that was given, else the address of its metadata document where the issuer takes one, else
 * one that it is registered for (RFC 7591). Nothing is asked where all of that is known. Throws `IssuerFailure`.
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
    throw new IssuerFailure('unavailable', 'no_metadata', `${mcp_url} does not say who gives tokens for it.`)
  // Throws where the metadata are those of another resource.
  const resource = await mcp.selectResourceURL(mcp_url, {} as OAuthClientProvider, resourceMetadata)
  const asked = challenge.scope?.split(' ').filter((scope) => scope !== '') ?? resourceMetadata?.scopes_supported ?? []
  const found: OAuthSettings = {
    ...settings,
    issuer: metadata.issuer,
    scopes: settings.scopes.length > 0 ? settings.scopes : asked,
    // As the server wrote it: a URL would get a slash at its end.
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
      `The issuer ${metadata.issuer} registers no clients: give the client_id that it knows this service by.`,
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

/** What the server says to a request without a token: where its metadata are, and which scopes it asks for (RFC 6750 §3). */
async function challengeOf(
  fetch: EgressFetch,
  mcp_url: string,
): Promise<{ resourceMetadataUrl?: URL; scope?: string }> {
  const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
  const response = await fetch(mcp_url, { headers: { accept: 'application/json, text/event-stream' } })
  // A server may answer with a stream that does not end.
  await response.body?.cancel()
  return response.status === 401 ? extractWWWAuthenticateParams(response) : {}
}
