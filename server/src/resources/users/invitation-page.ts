import { roleDescriptions, type Role } from '#contract/core/scopes.ts'
import { html, type Html } from '../../http/pages/html.ts'
import { alert, type Page } from '../../http/pages/page.ts'
import { orInstead, ssoButtons } from '../../http/pages/sso-buttons.ts'
import type { Offer } from '../members/invitations.queries.ts'
import type { SignedInUser } from './sessions/sessions.queries.ts'
import { accountFields, type TypedAccount } from './account-form.ts'
import { invitationIn } from './pages.ts'

/** Data of the invitation page for every visitor. */
interface InvitationView {
  offer: Offer
  /** The page's own path: target of its forms, and where users return after signing in or out. */
  path: string
}

/** Data of the page for a signed-in user. */
export interface JoinView extends InvitationView {
  user: SignedInUser
  token: string
  logout_token: string
  /** Whether the invitation is for this account. */
  isForThem: boolean
  fault?: string | undefined
}

export function joinPage({ offer, path, user, token, logout_token, isForThem, fault }: JoinView): Page {
  return {
    title: `Join ${offer.organization}`,
    content: html`
      ${heading(offer)}
      ${facts(offer)}
      ${alert(fault)}
      <div class="account">
        <div><span class="name">${user.name}</span><span class="mail">${user.email}</span></div>
        <form method="post" action="/logout">
          <input type="hidden" name="token" value="${logout_token}">
          <input type="hidden" name="return_to" value="${path}">
          <button aria-label="Switch account">Switch</button>
        </form>
      </div>
      ${
        isForThem
          ? html`<form method="post" action="${path}">
              <input type="hidden" name="token" value="${token}">
              <button class="primary wide">Join</button>
            </form>`
          : html`<p class="notice warn" role="note">This invitation is for <strong>${offer.email}</strong>. Switch to that account to accept it.</p>`
      }`,
  }
}

/** Data of the page for a visitor without a session. */
export interface InvitedView extends InvitationView {
  token: string
  typed: TypedAccount
  /** Identity providers that the visitor can join with. */
  providers: readonly { name: string; label: string }[]
  fault?: string | undefined
}

export function invitedPage({ offer, path, token, typed, fault, providers }: InvitedView): Page {
  const sign_in = new URLSearchParams({ return_to: path, ...(offer.email === null ? {} : { email: offer.email }) })
  return {
    title: `Join ${offer.organization}`,
    content: html`
      ${heading(offer)}
      ${facts(offer)}
      <div class="providers">
        ${ssoButtons(providers, { return_to: path, invitation: invitationIn(path) })}
        <a class="button wide" href="/login?${String(sign_in)}">I have an account</a>
      </div>
      ${orInstead}
      <h2>Create an account</h2>
      ${alert(fault)}
      <form method="post" action="${path}/account">
        <input type="hidden" name="token" value="${token}">
        ${accountFields({ ...typed, focus: false, ...(offer.email === null ? {} : { email: offer.email, isEmailFixed: true }) })}
        <button class="primary wide">Create account and join</button>
      </form>`,
  }
}

/** The page for a user who has joined by this link. */
export function joinedPage({ organization, role }: { organization: string; role: Role }): Page {
  return {
    title: `Welcome to ${organization}`,
    content: html`
      <h1>Welcome to ${organization}</h1>
      <p class="lead">You are a member as <strong>${role}</strong>: ${lower(roleDescriptions[role])}.</p>
      <p class="actions"><a class="button primary" href="/">Continue</a></p>`,
  }
}

/** The page for a user who was already a member. */
export function memberPage({ organization }: { organization: string }): Page {
  return {
    title: 'You are already a member',
    content: html`
      <h1>You are already a member</h1>
      <p class="lead">You belong to <strong>${organization}</strong>. Your role is unchanged, and the link still works for another person.</p>
      <p class="actions"><a class="button primary" href="/">Continue</a></p>`,
  }
}

/** The page for every link that does not work, whatever the reason. */
export function goneInvitationPage(): Page {
  return {
    title: 'This invitation does not work',
    content: html`
      <h1>This invitation does not work</h1>
      <p class="lead" role="alert">It was used, has expired or was withdrawn, or the link is incomplete. Ask the person who invited you for a new one.</p>`,
  }
}

function heading({ organization, invited_by }: Offer): Html {
  return html`
    <h1>Join ${organization}</h1>
    <p class="lead"><strong>${invited_by}</strong> invites you.</p>`
}

function facts({ role, expires_at }: Offer): Html {
  return html`
    <dl class="offer">
      <dt>Your role</dt><dd>${role}</dd>
      <dt>It allows</dt><dd>${roleDescriptions[role]}</dd>
      <dt>Works until</dt><dd><time datetime="${expires_at}">${expires_at.slice(0, 16).replace('T', ' ')} UTC</time></dd>
    </dl>`
}

function lower(text: string): string {
  return `${text.charAt(0).toLowerCase()}${text.slice(1)}`
}
