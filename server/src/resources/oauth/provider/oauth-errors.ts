import type { ErrorOut, KoaContextWithOIDC } from 'oidc-provider'
import type { Problem } from '#contract/core/problems.ts'
import { renderProblem } from '../../../http/error-formats.ts'
import { errorPage } from '../../../http/pages/forms.ts'
import { pageHeaders, renderPage } from '../../../http/pages/page.ts'
import { providerRequestOf } from './provider-bridge.ts'

/** A fault of the request that must not redirect, for a person as a page, for a program as JSON (decisions O4, D76). */
export function renderError(ctx: KoaContextWithOIDC, { error, error_description, scope, state }: ErrorOut): void {
  const message = `The app that sent you here made a request that cannot be answered: ${error_description ?? error}. Nothing was given to it.`
  answer(ctx, { error, error_description, scope, state }, 'This link does not work', message)
}

/** An internal error: 503 where the database is unreachable, 500 otherwise (decision D29). */
export function renderFailure(ctx: KoaContextWithOIDC, problem: Problem): void {
  const { status, headers, body } = renderProblem(problem, 'oauth', providerRequestOf(ctx.req).request_id)
  ctx.status = status
  ctx.set(headers)
  const title = problem.status === 503 ? 'Not available right now' : 'Something went wrong'
  answer(ctx, body, title, problem.message)
}

function answer(ctx: KoaContextWithOIDC, json: unknown, title: string, message: string): void {
  if (ctx.method !== 'GET' || ctx.accepts('json', 'html') !== 'html') {
    ctx.type = 'json'
    ctx.body = json
    return
  }
  ctx.set({ ...pageHeaders })
  ctx.body = renderPage(errorPage(title, message, providerRequestOf(ctx.req).request_id))
}
