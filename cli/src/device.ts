import { setTimeout as pause } from 'node:timers/promises'
import { Cadre } from '#sdk/client.ts'
import { APIConnectionError, APIError } from '#sdk/errors.ts'
import type { Login } from './credentials.ts'
import { CommandFailure } from './failure.ts'
import { loginOf } from './refresh.ts'

/** How often the service is asked whether the user has decided (RFC 8628 §3.2). */
const interval_ms = 5000
/** What each `slow_down` adds to that (RFC 8628 §3.5). */
const slower_ms = 5000

interface Asked {
  base_url: string
  client_id: string
  scope: string
  /** Tells where the user goes, with which code. */
  show(address: string, code: string): void
}

/**
 * Logs in from a machine without a browser: a user confirms a short code on any other one (RFC 8628). Throws
 * `CommandFailure` where they refuse, or the code has run out.
 */
export async function loginByDevice({ base_url, client_id, scope, show }: Asked): Promise<Login> {
  const client = new Cadre({ baseURL: base_url, apiKey: null })
  const asked = await client.oauth.authorizeDevice({ client_id, scope })
  show(asked.verification_uri, asked.user_code)
  const grant = {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    client_id,
    device_code: asked.device_code,
  } as const
  const end = Date.now() + asked.expires_in * 1000
  for (let wait_ms = interval_ms; Date.now() < end;) {
    await pause(wait_ms)
    try {
      return loginOf(base_url, client_id, await client.oauth.token(grant))
    } catch (error) {
      if (error instanceof APIError && error.code === 'slow_down') wait_ms += slower_ms
      else if (error instanceof APIError && error.code === 'access_denied')
        throw new CommandFailure('The login was refused.')
      else if (error instanceof APIError && error.code === 'expired_token') break
      // RFC 8628 §3.5: a connection that fails is no answer, so one asks again, less often.
      else if (error instanceof APIConnectionError) wait_ms *= 2
      else if (!(error instanceof APIError && error.code === 'authorization_pending')) throw error
    }
  }
  throw new CommandFailure('Nobody confirmed the code in time.', 'cadre login --device')
}
