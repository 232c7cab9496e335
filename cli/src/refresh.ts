import { Cadre } from '#sdk/client.ts'
import type { Login } from './credentials.ts'
import { locked } from './lock.ts'

/** A token is made new this long before it ends. */
const early_ms = 60_000

/** Where logins of all processes of a user are kept. */
interface LoginStore {
  /** The file that whoever refreshes holds. */
  lockPath: string
  read(): Login | undefined
  write(login: Login): void
}

/**
 * A login whose access token is good for a while: made new with its refresh token where that is needed, and kept. A refresh
 * token is good once, so that one process refreshes and the others take what it kept.
 */
export async function refreshed(login: Login, store: LoginStore): Promise<Login> {
  if (!isNearEnd(login)) return login
  return locked(store.lockPath, async () => {
    const kept = store.read()
    if (kept?.access_token !== undefined && !isNearEnd(kept)) return kept
    const { refresh_token, client_id, base_url } = kept ?? login
    if (refresh_token === undefined || client_id === undefined) return login
    const client = new Cadre({ baseURL: base_url, apiKey: null })
    const tokens = await client.oauth.token({ grant_type: 'refresh_token', refresh_token, client_id })
    const next = loginOf(base_url, client_id, tokens)
    store.write(next)
    return next
  })
}

function isNearEnd({ refresh_token, client_id, expires_at = Infinity }: Login): boolean {
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
