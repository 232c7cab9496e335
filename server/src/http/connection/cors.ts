import type { FastifyInstance } from 'fastify'

const exposed = [
  'X-Request-ID',
  'Retry-After',
  'ETag',
  'Idempotency-Replayed',
  'X-Response-Time',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Limit-Requests',
  'X-RateLimit-Remaining-Requests',
  'X-RateLimit-Reset-Requests',
  'X-RateLimit-Limit-Tokens',
  'X-RateLimit-Remaining-Tokens',
  'X-RateLimit-Reset-Tokens',
].join(', ')
const preflightAge_seconds = 600

/**
 * Lets pages of the listed origins call the API with a key or token. Off where the list is empty; never with cookies,
 * so a foreign page cannot act as the signed-in user (decision D18).
 */
export function registerCors(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return
  app.addHook('onRequest', async (request, reply) => {
    const { origin } = request.headers
    reply.header('vary', 'Origin')
    if (origin === undefined || !origins.includes(origin)) return
    reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed })
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return
    return reply
      .code(204)
      .headers({
        'access-control-allow-methods': 'GET, POST, PUT, DELETE',
        'access-control-allow-headers':
          'Authorization, Content-Type, X-API-Key, Idempotency-Key, If-Match, Last-Event-ID, X-Request-ID',
        'access-control-max-age': String(preflightAge_seconds),
      })
      .send()
  })
}
