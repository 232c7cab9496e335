import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'

/** Shared, because a new error would capture a stack trace, and every response's connection closes. */
const connectionClosed = new DOMException('The connection of the answer was closed.', 'AbortError')

/** Aborts when the connection of a response closes; at once if it is closed already. */
export function untilClosed({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController()
  whenClosed(raw, () => closed.abort(connectionClosed))
  return closed.signal
}

/** Calls `work` once when the connection of a response closes; at once if it is closed already. */
export function whenClosed(response: ServerResponse, work: () => void): void {
  if (response.destroyed) work()
  else response.once('close', work)
}
