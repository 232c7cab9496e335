import { html } from '../../http/pages/html.ts'
import type { Page } from '../../http/pages/page.ts'

/** The page on which a person types what their device shows. */
export function deviceCodePage(shown: { service: string; typed?: string; fault?: string }): Page {
  return {
    title: 'Connect a device',
    content: html`
      <h1>Connect a device</h1>
      <p class="lead">Type the code that it shows. It will then ask for access to your account on ${shown.service}.</p>
      ${shown.fault !== undefined && html`<p class="notice bad" role="alert" id="fault">${shown.fault}</p>`}
      <form method="get" action="/device">
        <div class="field">
          <label for="user_code">Code</label>
          <input id="user_code" name="user_code" value="${shown.typed ?? ''}" required autofocus maxlength="40"
            autocomplete="off" autocapitalize="characters" spellcheck="false" placeholder="XXXX-XXXX"${
              shown.fault !== undefined && html` aria-invalid="true" aria-describedby="fault"`
            }>
        </div>
        <div class="actions"><button class="primary">Continue</button></div>
      </form>
      <p class="foot">You have no such device, or did not start this? Close this page, and nothing happens.</p>`,
  }
}

/** What a person sees after they have decided. */
export function deviceDonePage(name: string, isAllowed: boolean): Page {
  const title = isAllowed ? 'Device connected' : 'Device not connected'
  return {
    title,
    content: html`
      <h1>${title}</h1>
      <p class="lead">${
        isAllowed
          ? html`${name} continues on its own. You can close this page.`
          : html`${name} has no access. You can close this page.`
      }</p>`,
  }
}
