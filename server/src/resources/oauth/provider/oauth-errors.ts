import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import { codeOf, type Problem } from '#contract/core/problems.ts'
import { renderProblem } from '../../../http/error-formats.ts'
import { errorPage } from '../../../http/pages/forms.ts'
import { pageHeaders, renderPage } from '../../../http/pages/page.ts'
import { providerRequestOf } from './provider-bridge.ts'

/** Renders a request error that must not redirect: a page for a person, JSON for a program (decisions O4, D76). */
export function renderError(ctx: KoaContextWithOIDC, { error, error_description, scope, state }: ErrorOut): void {
  const message = `The app that sent you here made an invalid request: ${error_description ?? error}. It got no access. Go back to the app and try again; if that fails, show this page to its developer.`
  answer(ctx, { error, error_description, scope, state }, { title: 'This link does not work', message, code: error })
}

/** Renders an internal error: 503 if the database is unreachable, 500 otherwise (decision D29). */
export function renderFailure(ctx: KoaContextWithOIDC, problem: Problem): void {
  const { status, headers, body } = renderProblem(problem, 'oauth', providerRequestOf(ctx.req).request_id)
  ctx.status = status
  ctx.set(headers)
  const title = problem.status === 503 ? 'Not available right now' : 'Something went wrong'
  answer(ctx, body, { title, message: problem.message, code: codeOf(problem) })
}

function answer(
  ctx: KoaContextWithOIDC,
  json: unknown,
  { title, message, code }: { title: string; message: string; code: string },
): void {
  if (ctx.method !== 'GET' || ctx.accepts('json', 'html') !== 'html') {
    ctx.type = 'json'
    ctx.body = json
    return
  }
  ctx.set({ ...pageHeaders })
  ctx.body = renderPage(errorPage(title, message, { code, request_id: providerRequestOf(ctx.req).request_id }))
}
