import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import { errorFormatOfPath } from '../error-formats.ts'
import { answerProblem } from '../handle.ts'
import type { HttpContext } from '../http-context.ts'

/** Collects every registered route, to tell a known path with another method from an unknown path. */
export function collectRoutes(app: FastifyInstance): Route[] {
  const routes: Route[] = []
  app.addHook('onRoute', ({ method, url }) => {
    const pattern = new RegExp(
      `^${url
        .replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')
        .replaceAll(/:\w+/g, '[^/]+')
        .replaceAll('\\*', '.*')}/?$`,
    )
    for (const name of [method].flat()) routes.push({ method: name, pattern })
  })
  return routes
}

export interface Route {
  method: string
  pattern: RegExp
}

/**
 * Answers an unknown path with 404, and a known path with another method with 405 and `Allow` (decision D12). Clients of
 * OpenAI get 404 for both, because parts of that API that are not served are below paths that are.
 */
export function answerUnknownPath(
  context: HttpContext,
  routes: readonly Route[],
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const path = request.url.split('?', 1)[0] ?? '/'
  const allowed = [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))].sort()
  // The router matched neither, although path and method are known: a parameter cannot be an identifier.
  const format = errorFormatOfPath(request.url)
  const problem =
    allowed.length === 0 || allowed.includes(request.method) || format === 'openai'
      ? new Problem('path_not_found')
      : new Problem('method_not_allowed', { allowed }, { headers: { allow: allowed.join(', ') } })
  answerProblem(context, problem, request, reply, format)
}
