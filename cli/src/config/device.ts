import { setTimeout as pause } from 'node:timers/promises'
import { Cadre } from '#sdk/client.ts'
import { APIConnectionError, APIError } from '#sdk/errors.ts'
import type { Login } from './credentials.ts'
import { CommandFailure } from '../failure.ts'
import { untilInterrupted } from '../interrupt.ts'
import { loginOf } from './refresh.ts'

/** Default interval of polls (RFC 8628 §3.2), and its increase after each `slow_down`. */
const poll_ms = 5000

interface Asked {
  base_url: string
  client_id: string
  scope: string
  show(code: { user_code: string; verification_uri: string; verification_uri_complete: string }): void
}

/**
 * Logs in from a machine without a browser (RFC 8628): shows a code to type on another device, and polls until the
 * decision. Throws `CommandFailure` if it is denied or the code expires.
 */
export function loginByDevice({ base_url, client_id, scope, show }: Asked): Promise<Login> {
  return untilInterrupted(async (signal) => {
    const client = new Cadre({ baseURL: base_url, apiKey: null })
    const device = await client.oauth.authorizeDevice({ client_id, scope }, { signal })
    show(device)
    const { device_code } = device
    const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id, device_code } as const
    const until = Date.now() + device.expires_in * 1000
    for (let wait_ms = poll_ms; Date.now() < until;) {
      await pause(wait_ms, undefined, { signal })
      try {
        return loginOf(base_url, client_id, await client.oauth.token(grant, { signal }))
      } catch (error) {
        if (error instanceof APIConnectionError) continue
        if (!(error instanceof APIError)) throw error
        if (error.code === 'slow_down') wait_ms += poll_ms
        else if (error.code === 'access_denied') throw new CommandFailure('The login was refused.')
        else if (error.code === 'expired_token') break
        else if (error.code !== 'authorization_pending') throw error
      }
    }
    throw new CommandFailure('The code expired before it was used.', 'cadre login --device')
  })
}
