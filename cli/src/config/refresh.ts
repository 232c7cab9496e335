import { Cadre } from '#sdk/client.ts'
import { APIError } from '#sdk/errors.ts'
import type { Environment } from './config.ts'
import { credentialsLock, type Login, readLogin, writeLogin } from './credentials.ts'
import { NotLoggedIn } from '../failure.ts'
import { locked } from './lock.ts'

/** A token is made new this long before it ends. */
const early_ms = 60_000
/** Of the one try to make it new: an answer that is lost must not be asked for again, for that would end the login. */
const timeout_ms = 15_000

/**
 * A login whose access token is good for a while: made new with its refresh token where that is needed, and kept. A refresh
 * token is good once, so of several processes one uses it, and the others read what it has kept. Throws `NotLoggedIn` where
 * the login has ended.
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

/** Whether a login must be made new before it is used, and can be. */
function isEnding({ refresh_token, client_id, expires_at = Infinity }: Login): boolean {
  return expires_at - Date.now() <= early_ms && refresh_token !== undefined && client_id !== undefined
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
