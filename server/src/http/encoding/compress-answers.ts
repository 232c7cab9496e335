import { constants, gzip } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { getDocs } from '#contract/resources/utility.ts'
import { acceptedEncoding } from './encoding.ts'

/** Shorter answers are sent as they are: on a near network compressing them takes longer than it saves. */
export const compressedMin_characters = 32_768

/**
 * Sends large JSON, such as a list of whole tasks, compressed to those who take it so (RFC 9110, section 12.5.3); outside this thread, and
 * for speed. An answer with an `ETag` that `If-Match` compares names one sequence of bytes and stays that.
 */
export function compressLargeAnswers(app: FastifyInstance): void {
  app.addHook<unknown>('onSend', (request, reply, payload, done) => {
    if (typeof payload !== 'string' || payload.length < compressedMin_characters || !isOpen(reply.getHeaders()))
      return done(null, payload)
    // That one text is compressed once, by a hook of its route, which runs after this one.
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

/** Whether an answer may have another encoding than it has. */
function isOpen({ etag, ...headers }: Record<string, unknown>): boolean {
  const isStrong = typeof etag === 'string' && !etag.startsWith('W/')
  return !isStrong && headers['content-encoding'] === undefined && /\bjson\b/.test(String(headers['content-type']))
}
