import { createHmac } from 'node:crypto'
import type { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../../context.ts'
import { surround } from './middleware.ts'
import { renderError } from './oauth-errors.ts'
import type { Library } from './provider-bridge.ts'
import { findGrantOwner } from '../oauth.queries.ts'
import { createProvider, oauthCookies } from './provider.ts'
import { loadSigningKey } from './signing-key.ts'
import { createStore, type OAuthStore } from './store.ts'

/** The authorization server with its storage. */
export interface AuthorizationServer extends Library {
  store: OAuthStore
  /** The cookie by which a browser takes up an authorization again, signed: for a step that is made for it. */
  resumeCookie(uid: string): string
}

/** Made with the first request, because only then it is known under which address the service is reached. */
export function authorizationServer(context: Context): () => Promise<AuthorizationServer> {
  let made: Promise<AuthorizationServer> | undefined
  return () => {
    made ??= make(context).catch((error: unknown) => {
      made = undefined
      throw error
    })
    return made
  }
}

async function make(context: Context): Promise<AuthorizationServer> {
  const { sql, config, secrets, log, public_url } = context
  const store = createStore(sql, { refresh_grace_seconds: config.oauth_refresh_grace_seconds })
  const cookie_secrets = secrets.signingKeys('oauth cookie')
  const provider = createProvider({
    issuer: public_url(),
    store,
    signing_key: await loadSigningKey(sql, secrets),
    cookie_secrets,
    renderError,
  })
  surround(provider, {
    ...{ store, log, registers: config.oauth_registration },
    tellOwner: (problem, grant_id, request_id) => void tellOwner(context, problem, grant_id, request_id),
  })
  const resumeCookie = (uid: string): string => signedCookie(`${oauthCookies.resume}=${uid}`, cookie_secrets[0]!)
  return { provider, store, serve: provider.callback(), resumeCookie }
}

/** A cookie with its signature, as the library reads it (`keygrip`: HMAC-SHA1 in base64url). */
function signedCookie(cookie: string, key: string): string {
  const name = cookie.slice(0, cookie.indexOf('='))
  return `${cookie}; ${name}.sig=${createHmac('sha1', key).update(cookie).digest('base64url')}`
}

/** An internal error in a request of an app becomes an event of the organization that granted access (decision D94). */
async function tellOwner(
  { sql, log, onInternalError }: Context,
  problem: Problem,
  grant_id: string,
  request_id: string,
): Promise<void> {
  try {
    const owner = await findGrantOwner(sql, grant_id)
    const resources = [grant_id, ...(owner ? [owner.client_id] : [])]
    onInternalError?.(problem, { id: request_id, principal: owner, params: {}, resources })
  } catch (cause) {
    log.error({ err: cause, request_id }, 'an internal error could not be made an event')
  }
}
