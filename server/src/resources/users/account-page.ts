import { html, type Html } from '../../http/pages/html.ts'
import { alert, field, type Page } from '../../http/pages/page.ts'
import type { IdentityRow } from './sso/identities.queries.ts'
import { accountPath } from './sso/sso-pages.ts'

/** Data of the page where a user connects and removes ways to sign in. */
export interface AccountView {
  name: string
  email: string
  has_password: boolean
  identities: (IdentityRow & { label: string; isRemovable: boolean })[]
  /** Providers that may be connected. */
  providers: readonly { name: string; label: string }[]
  /** Whether the page asks for the password, because the sign-in is not recent. */
  asksPassword: boolean
  token: string
  fault?: string | undefined
}

export function accountPage(view: AccountView): Page {
  const { name, email, has_password, identities, token, fault } = view
  return {
    title: 'How you sign in',
    content: html`
      <h1>How you sign in</h1>
      <p class="lead">as <strong>${name}</strong> (${email})</p>
      ${alert(fault)}
      <ul class="ways">
        ${has_password && html`<li><div><span class="name">Password</span></div></li>`}
        ${identities.map((identity) => identityItem(identity, token))}
      </ul>
      ${connectForm(view)}
      <p class="foot"><a href="/">Done</a></p>`,
  }
}

function identityItem(
  { id, label, email, subject, last_sign_in_at, isRemovable }: AccountView['identities'][number],
  token: string,
): Html {
  return html`
    <li>
      <div>
        <span class="name">${label}</span>
        <span class="mail">${email ?? subject}, last used ${last_sign_in_at.slice(0, 10)}</span>
      </div>
      ${
        isRemovable &&
        html`<form method="post" action="${accountPath}/disconnect">
          <input type="hidden" name="token" value="${token}">
          <input type="hidden" name="identity_id" value="${id}">
          <button aria-label="Disconnect ${label}">Disconnect</button>
        </form>`
      }
    </li>`
}

/** One form with a button for each provider, so that the password is typed once. */
function connectForm({ providers, asksPassword, has_password, token }: AccountView): Html | false {
  if (providers.length === 0) return false
  if (asksPassword && !has_password) {
    return html`<p class="notice">To connect another way, <a href="/login?${String(new URLSearchParams({ return_to: accountPath, again: '1' }))}">sign in again</a> first.</p>`
  }
  return html`
    <h2>Connect another way</h2>
    <form method="post" action="${accountPath}/connect">
      <input type="hidden" name="token" value="${token}">
      ${asksPassword && field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password' })}
      <div class="providers">${providers.map(({ name, label }) => html`<button class="wide" name="provider" value="${name}">Connect ${label}</button>`)}</div>
    </form>`
}
