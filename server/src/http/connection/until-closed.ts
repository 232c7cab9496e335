import type { FastifyReply } from 'fastify'

/** One for all: a new one would take a stack trace, and the connection of every answer closes. */
const connectionClosed = new DOMException('The connection of the answer was closed.', 'AbortError')

/** Aborts when the connection of an answer closes; at once where it has. */
export function untilClosed({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController()
  raw.once('close', () => closed.abort(connectionClosed))
  if (raw.destroyed) closed.abort(connectionClosed)
  return closed.signal
}
