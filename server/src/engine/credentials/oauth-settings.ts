import type { CredentialGrant } from '#contract/resources/credential-states.ts'

/** What an issuer is asked for: `settings` of a credential of type `oauth2`, without its client's secret. */
export interface OAuthSettings {
  grant: CredentialGrant
  /** In place of the two endpoints; of an MCP server it is discovered. */
  issuer?: string | undefined
  authorization_endpoint?: string | undefined
  token_endpoint?: string | undefined
  mcp_url?: string | undefined
  /** Of an MCP server it is there once this service is registered. */
  client_id?: string | undefined
  scopes: string[]
  /** What the tokens are for (RFC 8707), as an MCP server names itself. */
  resource?: string | undefined
  /** The redirect URI with which this service registered itself; another one needs another registration. */
  registered_for?: string | undefined
}

/** What is kept encrypted. */
export interface OAuthTokens {
  access_token: string
  refresh_token?: string | undefined
}
