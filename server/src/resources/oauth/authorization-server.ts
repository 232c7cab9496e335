import type { Context } from '../../context.ts'
import { surround } from './around.ts'
import { renderError } from './faults.ts'
import type { Library } from './hand-over.ts'
import { createProvider } from './provider.ts'
import { loadSigningKey } from './signing-key.ts'
import { createStore, type OAuthStore } from './store.ts'

/** The authorization server with its storage. */
export interface AuthorizationServer extends Library {
  store: OAuthStore
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

async function make({ sql, config, secrets, log, public_url }: Context): Promise<AuthorizationServer> {
  const store = createStore(sql, { refresh_grace_seconds: config.oauth_refresh_grace_seconds })
  const provider = createProvider({
    issuer: public_url(),
    store,
    signing_key: await loadSigningKey(sql, secrets),
    cookie_secrets: secrets.signingKeys('oauth cookie'),
    renderError,
  })
  surround(provider, store, log)
  return { provider, store, serve: provider.callback() }
}
