import type { FastifyReply } from 'fastify'

/** One for all: each would have a stack trace of its own otherwise, and every answer's connection is done with once. */
const connectionClosed = new DOMException('The connection of the answer was closed.', 'AbortError')

/** Aborts when the connection of an answer closes; at once where it has. */
export function untilClosed({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController()
  raw.once('close', () => closed.abort(connectionClosed))
  if (raw.destroyed) closed.abort(connectionClosed)
  return closed.signal
}
