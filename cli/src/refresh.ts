import { Cadre } from '#sdk/client.ts'
import type { Login } from './credentials.ts'

/** A token is made new this long before it ends. */
const early_ms = 60_000

/** A login whose access token is good for a while: made new with its refresh token where that is needed, and kept. */
export async function refreshed(login: Login, keep: (login: Login) => void): Promise<Login> {
  const { refresh_token, client_id, expires_at = Infinity, base_url } = login
  if (expires_at - Date.now() > early_ms || refresh_token === undefined || client_id === undefined) return login
  const client = new Cadre({ baseURL: base_url, apiKey: null })
  const tokens = await client.oauth.token({ grant_type: 'refresh_token', refresh_token, client_id })
  const next = loginOf(base_url, client_id, tokens)
  keep(next)
  return next
}

/** The login that a token endpoint's answer makes. */
export function loginOf(
  base_url: string,
  client_id: string,
  tokens: { access_token: string; refresh_token?: string | undefined; expires_in: number },
): Login {
  return {
    base_url,
    client_id,
    access_token: tokens.access_token,
    ...(tokens.refresh_token === undefined ? {} : { refresh_token: tokens.refresh_token }),
    expires_at: Date.now() + tokens.expires_in * 1000,
  }
}
