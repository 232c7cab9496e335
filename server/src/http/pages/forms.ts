import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { codeOf, Problem } from '#contract/core/problems.ts'
import type { FormTokens } from './form-token.ts'
import { html } from './html.ts'
import { toProblem } from '../errors.ts'
import { sendPage, type Page } from './page.ts'
import { isCleanText } from '../validation.ts'

/** Maximum size of a form. */
export const formBytesMax = 16_384

/**
 * Reads the fields of a form; the first value of a repeated field counts.
 * @throws `validation_error` for another content type, or for characters that cannot be stored
 */
export function readForm(request: FastifyRequest): Record<string, string | undefined> {
  const type = request.content_type ?? request.headers['content-type'] ?? ''
  if (!/^application\/x-www-form-urlencoded *(;|$)/i.test(type))
    throw new Problem('validation_error', undefined, { message: 'Invalid or expired form; reload the page.' })
  const fields: Record<string, string> = Object.create(null)
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  for (const [name, value] of new URLSearchParams(bytes.toString())) {
    if (!isCleanText(value))
      throw new Problem('validation_error', undefined, { message: 'The form has invalid characters. Remove them.' })
    fields[name] ??= value
  }
  return fields
}

/**
 * Refuses a form from another site. Pages of this service send no referrer, so the `Origin` of their forms is `null`. For
 * browsers without `Sec-Fetch-Site`, only the form's token protects.
 */
export function checkFormOrigin(request: FastifyRequest): void {
  const site = request.headers['sec-fetch-site']
  if (site === undefined || site === 'same-origin' || site === 'none') return
  throw new Problem('insufficient_permissions', undefined, { message: 'This form was sent by another site.' })
}

const preSession = 'cadre_form'

/**
 * Returns the cookie that identifies a browser before sign-in, and sets it if it is missing; it lasts until the browser
 * closes. Forms are bound to it: otherwise an attacker could sign another person's browser in to the attacker's account.
 */
export function preSessionOf(request: FastifyRequest, reply: FastifyReply, secure: boolean): string {
  const known = request.cookies[preSession]
  if (known !== undefined && /^[\w-]{22}$/.test(known)) return known
  const made = randomBytes(16).toString('base64url')
  void reply.setCookie(preSession, made, {
    path: reply.server.base_path || '/',
    httpOnly: true,
    sameSite: 'lax',
    secure,
  })
  return made
}

/** Whether the token of a form was issued to this browser for this form. */
export function isOwnForm(
  tokens: FormTokens,
  form: string,
  token: string | undefined,
  request: FastifyRequest,
): boolean {
  const browser = request.cookies[preSession]
  return browser !== undefined && tokens.verify(token, form, browser)
}

/**
 * A path on this origin to redirect to, from untrusted text. Returns `fallback` for text that a browser might resolve to
 * another origin (`//host`, `/\host`, control characters that browsers drop).
 */
export function safePath(text: string | undefined, fallback: string): string {
  if (text === undefined || text.length > 2048 || !/^\/(?![/\\])[\x21-\x7e]*$/.test(text) || text.includes('\\'))
    return fallback
  const here = 'http://here.invalid'
  const url = URL.parse(text, here)
  // Resolving `/..//host` leaves `//host`, which is another site again.
  return url?.origin === here && !url.pathname.startsWith('//') ? `${url.pathname}${url.search}${url.hash}` : fallback
}

/** Answers every error in this scope with a page. */
export function answerWithPages(scope: FastifyInstance): void {
  scope.setErrorHandler((error, request, reply) => {
    const problem = toProblem(pageProblem(error))
    logInternal(problem, request)
    return sendPage(reply.headers(problem.headers), problemPage(problem, request.id), problem.status)
  })
}

/** Whether the client accepts HTML, as browsers do. */
export function wantsPage(request: FastifyRequest): boolean {
  return /\btext\/html\b/i.test(request.headers.accept ?? '')
}

/** Answers errors in this scope with the page of `pageOf` for browsers, and with the usual problem for other clients. */
export function answerBrowsersWithPages(
  scope: FastifyInstance,
  onInternalError: ((problem: Problem, request: FastifyRequest) => void) | undefined,
  pageOf: (problem: Problem, request: FastifyRequest) => Page,
): void {
  scope.setErrorHandler((error, request, reply) => {
    // Thrown again, the error goes to the application's handler.
    if (!wantsPage(request)) throw error
    const problem = toProblem(error)
    logInternal(problem, request)
    if (problem.status === 500) onInternalError?.(problem, request)
    return sendPage(reply.headers(problem.headers), pageOf(problem, request), problem.status)
  })
}

function logInternal(problem: Problem, request: FastifyRequest): void {
  if (problem.status < 500) return
  request.log.error({ err: problem.cause ?? problem, request_id: request.id, code: problem.kind }, 'request failed')
}

/** Turns a 4xx error of the framework or the authorization server into a problem; returns other errors unchanged. */
function pageProblem(error: unknown): unknown {
  if (error instanceof Problem) return error
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 500
  if (status < 400 || status >= 500) return error
  return new Problem('validation_error', undefined, {
    cause: error,
    message: 'This page has expired or was opened in another browser. Go back to where you came from and start again.',
  })
}

function problemPage(problem: Problem, request_id: string): Page {
  const titles: Record<number, string> = {
    403: 'This is not allowed',
    429: 'Too many attempts',
    500: 'Something went wrong',
    503: 'Not available right now',
  }
  return errorPage(titles[problem.status] ?? 'This did not work', problem.message, {
    code: codeOf(problem),
    request_id,
  })
}

/** A page with an error, its code, and the request id, which the log has too. */
export function errorPage(
  title: string,
  message: string,
  { code, request_id }: { code: string; request_id: string },
): Page {
  return {
    title,
    content: html`
      <h1>${title}</h1>
      <p class="lead" role="alert">${message}</p>
      <p class="foot">Error <code>${code}</code><br>Request <code>${request_id}</code></p>`,
  }
}
