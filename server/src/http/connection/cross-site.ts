import type { FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'

/**
 * Refuses a request that a foreign page makes with the user's cookie (decision S2). `Sec-Fetch-Site` must be
 * `same-origin` or `none`. A browser without it sends `Origin`, which must be the service's; without either, the client
 * is not a browser. Reads are safe, because no response is shared with a foreign origin.
 */
export function checkSameOrigin(request: FastifyRequest, public_origin: string): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  const site = request.headers['sec-fetch-site']
  const { origin } = request.headers
  const allowed =
    site === undefined ? origin === undefined || origin === public_origin : site === 'same-origin' || site === 'none'
  if (!allowed)
    throw new Problem('insufficient_permissions', undefined, {
      message: 'Requests from other sites may not use the session cookie.',
    })
}
