import { html, type Html } from './html.ts'

/** Parameters of a sign-in with an identity provider. */
export interface SsoOnward {
  return_to: string
  /** Token of an invitation, which creates an account for a new user. */
  invitation?: string | undefined
  /** OpenID Connect's `prompt`. */
  prompt?: 'login' | 'select_account' | undefined
}

/** The path at which a browser starts to sign in with a provider. */
export function ssoPath(provider: string, { return_to, invitation, prompt }: SsoOnward): string {
  const query = new URLSearchParams({
    return_to,
    ...(invitation === undefined ? {} : { invitation }),
    ...(prompt === undefined ? {} : { prompt }),
  })
  return `/api/v1/auth/sso/${provider}?${String(query)}`
}

/**
 * A button for each provider; false without any. They are links, because the redirects after a form may not leave this
 * origin (`page.ts`).
 */
export function ssoButtons(providers: readonly { name: string; label: string }[], onward: SsoOnward): Html | false {
  return (
    providers.length > 0 &&
    html`<div class="providers">${providers.map(({ name, label }) => html`<a class="button wide" href="${ssoPath(name, onward)}">Continue with ${label}</a>`)}</div>`
  )
}

/** The divider between two ways to sign in. */
export const orInstead: Html = html`<p class="or"><span>or</span></p>`
