import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import { errorFormatOfPath } from '../error-formats.ts'
import { answerProblem } from '../handle.ts'
import type { HttpContext } from '../http-context.ts'

/** Remembers every registered route, so that a known path with another method is distinguished from an unknown path. */
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
 * A path that no operation has: 404; one that has other methods: 405 with `Allow` (decision D12). Clients of OpenAI get 404 for both: what
 * is not served there is partly below paths that are.
 */
export function answerUnknownPath(
  context: HttpContext,
  routes: readonly Route[],
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const path = request.url.split('?', 1)[0] ?? '/'
  const allowed = [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))].sort()
  // A path whose method is known got here by a parameter that no identifier can be: it names nothing.
  const format = errorFormatOfPath(request.url)
  const problem =
    allowed.length === 0 || allowed.includes(request.method) || format === 'openai'
      ? new Problem('path_not_found')
      : new Problem('method_not_allowed', { allowed }, { headers: { allow: allowed.join(', ') } })
  answerProblem(context, problem, request, reply, format)
}
