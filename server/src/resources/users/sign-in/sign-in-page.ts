import type { Issue } from '#contract/core/problems.ts'
import { html, type Html } from '../../../http/pages/html.ts'
import { alert, field, type Page } from '../../../http/pages/page.ts'
import { orInstead, ssoButtons } from '../../../http/pages/sso-buttons.ts'
import type { SignedInUser } from '../sessions/sessions.queries.ts'
import { accountFields } from '../account-form.ts'
import { accountPath } from '../sso/sso-pages.ts'

/** Data of the sign-in page. */
export interface SignInView {
  return_to: string
  token: string
  /** The app or organization that the user signs in for. */
  onward: string | undefined
  email?: string | undefined
  fault?: string | undefined
  /** Whether sign-up is open. */
  signup: boolean
  /** Whether the user must sign in again despite a session, also at identity providers. */
  anew: boolean
  /** Identity providers that users can sign in with. */
  providers: readonly { name: string; label: string }[]
  /** Token of the invitation that the user signs in for. */
  invitation: string | undefined
}

export function signInPage(view: SignInView): Page {
  const { return_to, token, onward, email, fault, signup, anew, providers, invitation } = view
  const buttons = ssoButtons(providers, { return_to, invitation, prompt: anew ? 'login' : undefined })
  return {
    title: 'Sign in',
    content: html`
      <h1>Sign in</h1>
      ${leadOf(onward, providers.length > 0)}
      ${alert(fault)}
      ${buttons && html`${buttons}${orInstead}`}
      <form method="post" action="/login">
        <input type="hidden" name="token" value="${token}">
        <input type="hidden" name="return_to" value="${return_to}">
        ${anew && html`<input type="hidden" name="again" value="1">`}
        ${field({ name: 'email', label: 'E-mail address', type: 'email', autocomplete: 'username', value: email ?? '', focus: !email })}
        ${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', focus: Boolean(email) })}
        <button class="primary wide">Sign in</button>
      </form>
      ${signup && html`<p class="foot">No account yet? <a href="/signup?${String(new URLSearchParams({ return_to }))}">Create one</a></p>`}`,
  }
}

function leadOf(onward: string | undefined, hasProviders: boolean): Html | false {
  if (onward !== undefined) return html`<p class="lead">to continue to <strong>${onward}</strong></p>`
  return !hasProviders && html`<p class="lead">Enter your e-mail address and password.</p>`
}

/** Data of the sign-up page. */
export interface SignUpView {
  return_to: string
  token: string
  email?: string
  name?: string
  fault?: string
  issues?: readonly Issue[]
}

export function signUpPage({ return_to, token, fault, ...typed }: SignUpView): Page {
  return {
    title: 'Create an account',
    content: html`
      <h1>Create an account</h1>
      <p class="lead">You get an organization of your own.</p>
      ${alert(fault)}
      <form method="post" action="/signup">
        <input type="hidden" name="token" value="${token}">
        <input type="hidden" name="return_to" value="${return_to}">
        ${accountFields(typed)}
        <button class="primary wide">Create account</button>
      </form>
      <p class="foot">Have an account? <a href="/login?${String(new URLSearchParams({ return_to }))}">Sign in</a></p>`,
  }
}

export function signedInPage({ name, email }: SignedInUser, logout_token: string, hasProviders: boolean): Page {
  return {
    title: 'Signed in',
    content: html`
      <h1>You are signed in</h1>
      <p class="lead">as <strong>${name}</strong> (${email})</p>
      <form method="post" action="/logout">
        <input type="hidden" name="token" value="${logout_token}">
        <button class="wide">Sign out</button>
      </form>
      ${hasProviders && html`<p class="foot"><a href="${accountPath}">How you sign in</a></p>`}`,
  }
}
