import type { Problem } from '#contract/core/problems.ts'
import { html } from '../../../http/pages/html.ts'
import { alert, field, type Page } from '../../../http/pages/page.ts'
import { ssoPath } from '../../../http/pages/sso-buttons.ts'

/** Path of the page where users connect and remove ways to sign in. */
export const accountPath = '/account/sign-in'

/** Data of the page that asks for the password of the account to link. */
export interface ConfirmView {
  provider: { name: string; label: string }
  email: string
  /** The proven identity, encrypted for this browser. */
  proof: string
  return_to: string
  fault?: string | undefined
}

export function confirmPage({ provider: { name, label }, email, proof, return_to, fault }: ConfirmView): Page {
  return {
    title: `Connect ${label}`,
    content: html`
      <h1>Connect ${label}</h1>
      <p class="lead">An account with the e-mail address <strong>${email}</strong> already exists. Enter its password once; from then on ${label} signs you in to it.</p>
      ${alert(fault)}
      <form method="post" action="/sso/confirm">
        <input type="hidden" name="proof" value="${proof}">
        <input type="hidden" name="provider" value="${name}">
        <input type="hidden" name="return_to" value="${return_to}">
        ${field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', focus: true })}
        <button class="primary wide">Connect and sign in</button>
      </form>
      <p class="foot">Not your account? <a href="/login?${String(new URLSearchParams({ return_to }))}">Sign in otherwise</a></p>`,
  }
}

/** Content of the page that explains why a user is not signed in. */
export interface RefusedView {
  problem: Problem
  request_id: string
  /** Undefined if the provider does not exist. */
  provider: { name: string; label: string } | undefined
  return_to: string
  /** Whether a signed-in user wanted to connect the provider. */
  isLinking: boolean
}

/** A page with the error and links to continue. */
export function refusedPage({ problem, request_id, provider, return_to, isLinking }: RefusedView): Page {
  const onward = reasonOf(problem) === 'email_taken' ? accountPath : return_to
  const again = provider && ssoPath(provider.name, { return_to, prompt: 'select_account' })
  const actions = isLinking
    ? html`<a class="button primary" href="${accountPath}">Back</a>`
    : html`
        <a class="button primary" href="/login?${String(new URLSearchParams({ return_to: onward }))}">Go to sign-in</a>
        ${provider && html`<a class="button" href="${again}">Try ${provider.label} again</a>`}`
  return {
    title: titleOf(problem),
    content: html`
      <h1>${titleOf(problem)}</h1>
      <p class="lead" role="alert">${problem.message}</p>
      <p class="actions">${actions}</p>
      <p class="foot">Request <code>${request_id}</code></p>`,
  }
}

function titleOf(problem: Problem): string {
  if (reasonOf(problem) === 'email_taken') return 'You already have an account'
  const titles: Record<number, string> = {
    404: 'This page does not exist',
    409: 'This cannot be connected',
    429: 'Too many attempts',
    500: 'Something went wrong',
    502: 'This did not work',
    503: 'Not available right now',
    504: 'This took too long',
  }
  return titles[problem.status] ?? 'You are not signed in'
}

function reasonOf({ details }: Problem): unknown {
  return typeof details === 'object' && details !== null && 'reason' in details ? details.reason : undefined
}
