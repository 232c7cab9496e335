import { Cadre } from '#sdk/client.ts'
import { APIError } from '#sdk/errors.ts'
import type { Environment } from './config.ts'
import { credentialsLock, type Login, readLogin, writeLogin } from './credentials.ts'
import { NotLoggedIn } from '../failure.ts'
import { locked } from './lock.ts'

/** A token is refreshed this long before it expires. */
const early_ms = 60_000
/** Timeout of the single attempt: after a lost response, a second use of the refresh token would end the login. */
const timeout_ms = 15_000

/**
 * Returns a login with a valid access token; refreshes and stores it if needed. A refresh token can be used once, so of
 * several processes one uses it, and the others read the stored result. Throws `NotLoggedIn` if the login has ended.
 */
export async function refreshed(login: Login, env: Environment, profile: string): Promise<Login> {
  if (!isEnding(login)) return login
  return locked(credentialsLock(env), async () => {
    const kept = readLogin(env, profile, login.base_url)
    if (kept === undefined) throw new NotLoggedIn(`Another process logged out of ${login.base_url}.`)
    if (!isEnding(kept)) return kept
    const { base_url, refresh_token = '', client_id = '' } = kept
    const client = new Cadre({ baseURL: base_url, apiKey: null, timeout_ms, maxRetries: 0 })
    try {
      const tokens = await client.oauth.token({ grant_type: 'refresh_token', refresh_token, client_id })
      const next = loginOf(base_url, client_id, tokens)
      writeLogin(env, profile, next)
      return next
    } catch (error) {
      if (!(error instanceof APIError) || error.status >= 500 || error.status === 429) throw error
      throw new NotLoggedIn(`The login to ${base_url} has ended: ${error.message}`)
    }
  })
}

/** Whether a login expires soon and can be refreshed. */
function isEnding({ refresh_token, client_id, expires_at = Infinity }: Login): boolean {
  return expires_at - Date.now() <= early_ms && refresh_token !== undefined && client_id !== undefined
}

/** Makes a login from the response of a token endpoint. */
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
