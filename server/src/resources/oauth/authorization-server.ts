import type Provider from 'oidc-provider'
import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import type { Context } from '../../context.ts'
import { errorPage } from '../../http/forms.ts'
import { pageHeaders, renderPage } from '../../http/page.ts'
import { surround } from './around.ts'
import { passageOf } from './hand-over.ts'
import { createProvider } from './provider.ts'
import { loadSigningKey } from './signing-key.ts'
import { createStore, type OAuthStore } from './store.ts'

/** The authorization server with its storage. */
export interface AuthorizationServer {
  provider: Provider
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
  return { provider, store }
}

/** A fault that must not redirect, for a person as a page, for a program as JSON (decisions 1.3.8, D76). */
function renderError(ctx: KoaContextWithOIDC, { error, error_description, scope, state }: ErrorOut): void {
  if (ctx.method !== 'GET' || ctx.accepts('json', 'html') !== 'html') {
    ctx.type = 'json'
    ctx.body = { error, error_description, scope, state }
    return
  }
  ctx.set({ ...pageHeaders })
  const message = `The app that sent you here made a request that cannot be answered: ${error_description ?? error}. Nothing was given to it.`
  ctx.body = renderPage(errorPage('This link does not work', message, passageOf(ctx.req).request_id))
}
