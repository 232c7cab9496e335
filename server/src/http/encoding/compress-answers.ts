import { constants, gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { getDocs } from '#contract/resources/utility.ts'
import { acceptedEncoding } from './encoding.ts'

/** Shorter responses are not compressed: on a fast network, compression takes longer than it saves. */
export const compressedMin_characters = 32_768

/**
 * Compresses large JSON responses for clients that accept it (RFC 9110 §12.5.3), outside of this thread, at the fastest
 * level. A response with a strong `ETag`, which `If-Match` compares, names one sequence of bytes and is not compressed.
 */
export function compressLargeAnswers(app: FastifyInstance): void {
  app.addHook<unknown>('onSend', (request, reply, payload, done) => {
    if (typeof payload !== 'string' || payload.length < compressedMin_characters || !isOpen(reply.getHeaders()))
      return done(null, payload)
    // A hook of its route, which runs later, compresses that one text once.
    if (request.routeOptions.config.operation?.id === getDocs.id) return done(null, payload)
    const others = reply.getHeader('vary')
    reply.header('vary', others === undefined ? 'accept-encoding' : `${others.toString()}, accept-encoding`)
    if (request.method === 'HEAD' || acceptedEncoding(request, ['gzip']) === undefined) return done(null, payload)
    gzip(payload, { level: constants.Z_BEST_SPEED }, (error, zipped) => {
      if (error) return done(error)
      reply.header('content-encoding', 'gzip').removeHeader('content-length')
      done(null, zipped)
    })
  })
}

/** Whether a response may get another encoding. */
function isOpen({ etag, ...headers }: Record<string, unknown>): boolean {
  const isStrong = typeof etag === 'string' && !etag.startsWith('W/')
  return !isStrong && headers['content-encoding'] === undefined && /\bjson\b/.test(String(headers['content-type']))
}
