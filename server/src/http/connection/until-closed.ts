import type { FastifyReply } from 'fastify'

/** Aborts when the connection of an answer closes; at once where it has. */
export function untilClosed({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController()
  raw.once('close', () => gone.abort())
  if (raw.destroyed) gone.abort()
  return gone.signal
}
