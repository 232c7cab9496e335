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
  /** The signed cookie that resumes an authorization, for a step that the service makes on behalf of the browser. */
  resumeCookie(uid: string): string
}

/** Created with the first request, because only then the public address is known. */
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

/** A cookie with its signature in the library's format (`keygrip`: HMAC-SHA1 in base64url). */
function signedCookie(cookie: string, key: string): string {
  const name = cookie.slice(0, cookie.indexOf('='))
  return `${cookie}; ${name}.sig=${createHmac('sha1', key).update(cookie).digest('base64url')}`
}

/**
 * Emits an event for an internal error in a request of an app, for the organization that granted access (decision
 * D94).
 */
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
    log.error({ err: cause, request_id }, 'the event of an internal error could not be stored; webhooks do not get it')
  }
}
