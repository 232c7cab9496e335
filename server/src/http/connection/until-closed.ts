import type { FastifyReply } from 'fastify'

/** Aborts when the connection of an answer closes; at once where it has. */
export function untilClosed({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController()
  raw.once('close', () => closed.abort())
  if (raw.destroyed) closed.abort()
  return closed.signal
}
