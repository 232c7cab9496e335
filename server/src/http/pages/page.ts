import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import { pageBelowBase } from '../connection/base-path.ts'
import { html, Html } from './html.ts'
import { pageStyle } from './page-style.ts'

/** A page for people. */
export interface Page {
  /** Shown in the tab before the product's name. */
  title: string
  content: Html
  /** Where the page redirects at once, by a meta refresh. */
  continue_to?: string
  /** The URL on another origin to which a form of the page redirects. */
  form_redirects_to?: string
}

const styleHash = createHash('sha256').update(pageStyle).digest('base64')

/**
 * Pages run no scripts, load nothing, cannot be framed, and send forms only to this service. Chromium applies
 * `form-action` to every redirect after a form. So a form may redirect to another origin only if its page names it in
 * `form_redirects_to`; otherwise the form is answered with a page that has `continue_to`.
 */
function contentSecurityPolicy(form_redirects_to?: string): string {
  const target = form_redirects_to === undefined ? '' : ` ${sourceOf(form_redirects_to)}`
  return [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    `form-action 'self'${target}`,
    "frame-ancestors 'none'",
    "base-uri 'none'",
  ].join('; ')
}

/** A URL as a source expression of a policy: its origin, or its scheme if it has none. */
function sourceOf(text: string): string {
  const url = new URL(text)
  return url.origin === 'null' ? url.protocol : url.origin
}

/** Headers of every page against clickjacking and leaks of the referrer. */
export const pageHeaders: Readonly<Record<string, string>> = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': contentSecurityPolicy(),
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

/** Sends a page. */
export function sendPage(reply: FastifyReply, page: Page, status = 200): FastifyReply {
  return reply
    .code(status)
    .headers({ ...pageHeaders, 'content-security-policy': contentSecurityPolicy(page.form_redirects_to) })
    .send(pageBelowBase(reply.server.base_path, renderPage(page)))
}

/** A page that redirects to `url`, with a link for browsers that do not follow the redirect. */
export function continuePage(url: string, label: string): Page {
  return {
    title: 'One moment',
    continue_to: url,
    content: html`
      <h1>One moment</h1>
      <p class="lead">Continuing to ${label}.</p>
      <p class="actions"><a class="button primary" href="${url}">Continue</a></p>`,
  }
}

/** The whole document of a page. */
export function renderPage({ title, content, continue_to }: Page): string {
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
${continue_to !== undefined && html`<meta http-equiv="refresh" content="0;url=${continue_to}">`}
<title>${title} · Cadre</title>
<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}">
<style>${new Html(pageStyle)}</style>
</head>
<body>
<main>
<p class="brand">${new Html(mark)}<span>Cadre</span></p>
${content}
</main>
</body>
</html>`
  return document.text
}

/** The same icon as `console/public/icon.svg`. */
const shapes =
  '<rect width="32" height="32" rx="8" fill="#4f46e5"/><path d="M21.5 11.2A7.2 7.2 0 1 0 21.5 20.8" fill="none" stroke="#fff" ' +
  'stroke-width="3.2" stroke-linecap="round"/><circle cx="16" cy="16" r="2.2" fill="#fff"/>'
const mark = `<svg viewBox="0 0 32 32" width="28" height="28" aria-hidden="true">${shapes}</svg>`
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${shapes}</svg>`

/** A message that screen readers announce at once. */
export function alert(message: string | undefined): Html | false {
  return message !== undefined && html`<p class="notice bad" role="alert">${message}</p>`
}

/** A labelled text field of a form. */
export interface Field {
  name: string
  label: string
  type: 'text' | 'email' | 'password'
  autocomplete: string
  value?: string
  hint?: string
  /** The error of the current value. */
  fault?: string | undefined
  focus?: boolean
  /** Read-only. */
  isFixed?: boolean
}

export function field({ name, label, type, autocomplete, value, hint, fault, focus, isFixed }: Field): Html {
  const described = [fault !== undefined && `${name}-fault`, hint !== undefined && `${name}-hint`].filter(
    (id) => id !== false,
  )
  return html`
    <div class="field">
      <label for="${name}">${label}</label>
      <input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" required
        ${value !== undefined && html`value="${value}"`}
        ${described.length > 0 && html`aria-describedby="${described.join(' ')}"`}
        ${fault !== undefined && html`aria-invalid="true"`}
        ${type === 'email' && html`autocapitalize="none" spellcheck="false"`}
        ${isFixed === true && html`readonly`}
        ${focus === true && html`autofocus`}>
      ${fault !== undefined && html`<p class="fault" id="${name}-fault">${fault}</p>`}
      ${hint !== undefined && html`<p class="hint" id="${name}-hint">${hint}</p>`}
    </div>`
}
