import { html } from '../../http/pages/html.ts'
import type { Page } from '../../http/pages/page.ts'

/** The page on which a person types the code of their device. */
export function deviceCodePage(shown: { service: string; typed?: string; fault?: string }): Page {
  return {
    title: 'Connect a device',
    content: html`
      <h1>Connect a device</h1>
      <p class="lead">Enter the code that your device shows. The next page says which access to your account on ${shown.service} it asks for.</p>
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
      <p class="foot">If you did not start this, close this page. Nothing will be connected.</p>`,
  }
}

/** The page after the decision. */
export function deviceDonePage(name: string, isAllowed: boolean): Page {
  const title = isAllowed ? 'Device connected' : 'Device not connected'
  return {
    title,
    content: html`
      <h1>${title}</h1>
      <p class="lead">${
        isAllowed
          ? html`${name} now has access. You can close this page and go back to your device.`
          : html`${name} has no access. You can close this page.`
      }</p>`,
  }
}
