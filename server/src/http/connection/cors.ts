import type { FastifyInstance } from 'fastify'
import { doors } from '#contract/core/doors.ts'
import { headerComponents } from '#contract/openapi/openapi-headers.ts'

const exposed = [...Object.keys(headerComponents), 'Cadre-Task-Id', 'Cadre-Ignored'].join(', ')
const allowed = [
  'Authorization',
  'Content-Type',
  'X-API-Key',
  'X-Organization-ID',
  'Idempotency-Key',
  'If-Match',
  'Last-Event-ID',
  'X-Request-ID',
  'traceparent',
].join(', ')
const preflightAge_seconds = 600

/** Clients of other protocols send further headers, such as `X-Stainless-Lang`; none of them grants a right. */
function asked(headers: string | undefined): string {
  return headers !== undefined && /^[A-Za-z0-9_, -]{1,2000}$/.test(headers) ? headers : allowed
}

/** Paths of other protocols, and paths that their clients need to get a token from a page. */
const doorPath = new RegExp(
  `^(${Object.values(doors)
    .map(({ path }) => path)
    .join('|')})([/?]|$)`,
)
const tokenPath = /^\/(\.well-known\/|oauth2\/(token|revoke)([?]|$))/

/**
 * Lets pages of the listed origins call the API, or the other protocols, with a key or token. Off if both lists are
 * empty. Cookies are never allowed, so a foreign page cannot act as the signed-in user (decision D18).
 */
export function registerCors(
  app: FastifyInstance,
  origins: { api: readonly string[]; doors: readonly string[] },
): void {
  if (origins.api.length + origins.doors.length === 0) return
  const listed = (url: string): readonly string[] => {
    if (doorPath.test(url)) return origins.doors
    return tokenPath.test(url) ? [...origins.api, ...origins.doors] : origins.api
  }
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    reply.header('vary', 'Origin')
    if (origin === undefined || !listed(request.url).includes(origin)) return
    reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed })
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return
    return reply
      .code(204)
      .headers({
        'access-control-allow-methods': 'GET, POST, PUT, DELETE',
        'access-control-allow-headers': doorPath.test(request.url)
          ? asked(request.headers['access-control-request-headers'])
          : allowed,
        'access-control-max-age': String(preflightAge_seconds),
      })
      .send()
  })
}
