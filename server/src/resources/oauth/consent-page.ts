import { scopeDescriptions, type Scope } from '#contract/core/scopes.ts'
import { html, Html } from '../../http/pages/html.ts'
import type { Page } from '../../http/pages/page.ts'
import type { SignedInUser } from '../users/sessions/sessions.queries.ts'
import { isUnregistered, type Membership, type OAuthClientRow, type Publisher } from './oauth.queries.ts'
import { isLoopback } from './redirect-uris.ts'

/** Content of the page on which a user decides about an app. */
export interface ConsentView {
  action: string
  token: string
  /** Further fields of the form. */
  fields?: Record<string, string>
  client: OAuthClientRow
  /** The publisher of the app. */
  publisher: Publisher
  scopes: string[]
  /** The URL that the browser goes to next, or the device that shows a code. */
  sends_to: string | { user_code: string; ip: string; user_agent: string }
  /** The public address of this service. */
  public_url: string
  /** The address that the access is for; null for the API. */
  resource: string | null
  user: SignedInUser
  /** Organizations to choose from; no choice is shown for a single one. */
  organizations: Membership[]
  /** The preselected organization. */
  org_id: string | undefined
  logout: { token: string; return_to: string }
}

/**
 * The consent page: app, account, requested scopes and destination, with the choices allow, deny and another account.
 */
export function consentPage(view: ConsentView): Page {
  const { client, user, sends_to, publisher, public_url } = view
  return {
    title: `Allow ${client.name}?`,
    ...(typeof sends_to === 'string' && { form_redirects_to: sends_to }),
    content: html`
      <h1>Allow ${client.name}?</h1>
      <p class="lead">${isUnregistered(client) ? `The app of ${publisher.name}` : client.name} asks for access to your account on ${new URL(public_url).host}.</p>
      ${isUnregistered(client) ? unregisteredWarning(client, publisher, sends_to) : !publisher.is_own && strangerWarning(publisher)}
      ${warning(sends_to)}
      <div class="account">
        <div><span class="name">${user.name}</span><span class="mail">${user.email}</span></div>
        <form method="post" action="/logout">
          <input type="hidden" name="token" value="${view.logout.token}">
          <input type="hidden" name="return_to" value="${view.logout.return_to}">
          <button aria-label="Switch account">Switch</button>
        </form>
      </div>
      <form method="post" action="${view.action}">
        <input type="hidden" name="token" value="${view.token}">
        ${Object.entries(view.fields ?? {}).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
        ${organizationChoice(view)}
        <h2 id="asked">It will be able to</h2>
        <ul class="scopes" aria-labelledby="asked">${widestFirst(view.scopes).map(scopeItem)}</ul>
        <dl>
          <dt>Publisher</dt><dd>${publisher.name}${publisher.is_own ? ' (your organization)' : ' (unverified)'}</dd>
          <dt>Publisher host</dt><dd>${publisherHosts(client)}</dd>
          ${destination(sends_to)}
          <dt>Access to</dt><dd>${view.resource ?? `${public_url}/api/v1`}</dd>
          <dt>App ID</dt><dd>${client.client_id}</dd>
        </dl>
        <div class="actions">
          <button name="decision" value="deny">Deny</button>
          <button class="primary" name="decision" value="allow">Allow</button>
        </div>
      </form>
      <p class="foot">The app can never do more than you can. You can end its access at any time, under OAuth apps in the console.</p>`,
  }
}

/**
 * Warning about an app of another organization. Names of apps and organizations are freely chosen, so only an app of
 * the user's own organization is trusted.
 */
function strangerWarning({ name }: Publisher): Html {
  return html`
      <p class="notice warn" role="note"><strong>This app is unverified.</strong> It was registered by ${name}, an organization that you do not belong to. Cadre has not checked who that is.</p>`
}

/** Warning about an unregistered app. Its name proves nothing; only its host and the destination are verified. */
function unregisteredWarning({ name }: OAuthClientRow, publisher: Publisher, sends_to: ConsentView['sends_to']): Html {
  const to = typeof sends_to === 'string' && !isLoopback(sends_to) ? new URL(sends_to).host : publisher.name
  return html`
      <p class="notice warn" role="note"><strong>This app is not registered here.</strong> The name “${name}” is what ${publisher.name} says of it. Allow it only if you know and trust ${publisher.name}.${to !== publisher.name && html` Its answer goes to another host: <strong>${to}</strong>.`}</p>`
}

const hostsShown = 3

/** The hosts of the app's redirect URIs, the only verified fact about the app. */
function publisherHosts({ redirect_uris }: OAuthClientRow): string {
  const hosts = new Set(redirect_uris.filter((uri) => !isLoopback(uri)).map((uri) => URL.parse(uri)?.host ?? uri))
  if (hosts.size === 0) return 'none: it runs on its user’s machine'
  const more = hosts.size - hostsShown
  return [...hosts].slice(0, hostsShown).join(', ') + (more > 0 ? ` and ${more} more` : '')
}

/** Warning for a person who did not start the authorization. */
function warning(sends_to: ConsentView['sends_to']): Html | false {
  if (typeof sends_to !== 'string')
    return html`
      <p class="notice warn" role="note"><strong>Does your device show ${sends_to.user_code}?</strong> If another person sent you this code, they get the access, not you. Allow it only if you have just started it yourself.</p>`
  return (
    isLoopback(sends_to) &&
    html`
      <p class="notice warn" role="note"><strong>This app runs on your own machine.</strong> Cadre cannot tell which program it is. Allow it only if you have just started it yourself.</p>`
  )
}

function destination(sends_to: ConsentView['sends_to']): Html {
  if (typeof sends_to === 'string') return html`<dt>Sends you to</dt><dd>${URL.parse(sends_to)?.host ?? sends_to}</dd>`
  return html`<dt>Code</dt><dd>${sends_to.user_code}</dd><dt>Requested from</dt><dd>${sends_to.ip}</dd><dt>Program</dt><dd>${sends_to.user_agent || 'unknown'}</dd>`
}

function organizationChoice({ organizations, org_id }: ConsentView): Html {
  const [only] = organizations
  if (organizations.length <= 1) return html`<input type="hidden" name="org_id" value="${only?.id ?? ''}">`
  const chosen = org_id ?? only?.id
  return html`
    <div class="field">
      <label for="org_id">Organization that it may work in</label>
      <select id="org_id" name="org_id">
        ${organizations.map(({ id, name }) => html`<option value="${id}"${id === chosen && html` selected`}>${name}</option>`)}
      </select>
    </div>`
}

const tick = new Html(
  '<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2.2" ' +
    'stroke-linecap="round" stroke-linejoin="round"><path d="M3 8.5 6.5 12 13 4.5"/></svg>',
)

/** Sorts full access first, so that it is not overlooked. */
function widestFirst(scopes: readonly string[]): string[] {
  return scopes.toSorted((a, b) => Number(b === 'admin') - Number(a === 'admin'))
}

function scopeItem(scope: string): Html {
  const description = scopeDescriptions[scope as Scope] ?? scope
  return html`<li>${tick}<span>${scope === 'admin' ? html`<strong>${description}</strong>, as an administrator too` : description}</span></li>`
}
