import type { CredentialGrant } from '#contract/resources/credential-states.ts'

/**
 * `settings` of a credential of type `oauth2`: what to request from its issuer. The client's secret is stored
 * separately.
 */
export interface OAuthSettings {
  grant: CredentialGrant
  /** In place of the two endpoints; discovered for an MCP server. */
  issuer?: string | undefined
  authorization_endpoint?: string | undefined
  token_endpoint?: string | undefined
  mcp_url?: string | undefined
  /** For an MCP server, set once this service is registered. */
  client_id?: string | undefined
  scopes: string[]
  /** The resource that the tokens are for (RFC 8707), as an MCP server names itself. */
  resource?: string | undefined
  /** The redirect URI of this service's registration; another URI needs another registration. */
  registered_for?: string | undefined
}

/** The part that is stored encrypted. */
export interface OAuthTokens {
  access_token: string
  refresh_token?: string | undefined
}
