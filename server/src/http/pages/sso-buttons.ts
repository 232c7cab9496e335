import { html, type Html } from './html.ts'

/** Where a sign-in with a provider begins, and its parameters. */
export interface SsoOnward {
  return_to: string
  /** Token of an invitation, which creates an account for a new user. */
  invitation?: string | undefined
  /** What the provider is asked to do. */
  prompt?: 'login' | 'select_account' | undefined
}

/** Where a browser begins to sign in with a provider. */
export function ssoPath(provider: string, { return_to, invitation, prompt }: SsoOnward): string {
  const query = new URLSearchParams({
    return_to,
    ...(invitation === undefined ? {} : { invitation }),
    ...(prompt === undefined ? {} : { prompt }),
  })
  return `/api/v1/auth/sso/${provider}?${String(query)}`
}

/**
 * A button for each provider that one may sign in with; nothing where there is none. They are links, not forms: a form's
 * chain of redirects may not leave us (`page.ts`).
 */
export function ssoButtons(providers: readonly { name: string; label: string }[], onward: SsoOnward): Html | false {
  return (
    providers.length > 0 &&
    html`<div class="providers">${providers.map(({ name, label }) => html`<a class="button wide" href="${ssoPath(name, onward)}">Continue with ${label}</a>`)}</div>`
  )
}

/** Says that what follows is another way. */
export const orInstead: Html = html`<p class="or"><span>or</span></p>`
