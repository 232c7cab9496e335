import type { FastifyReply } from 'fastify'

export function isEventStream(answer: Response): boolean {
  return answer.headers.get('content-type')?.startsWith('text/event-stream') === true
}

/** Takes over a reply, and writes the status and the headers of an answer of the MCP library. The body is the caller's. */
export function writeAnswerHead(reply: FastifyReply, answer: Response): void {
  const ours = reply.getHeaders() as Record<string, string>
  const unbuffered = isEventStream(answer)
    ? { 'cache-control': 'no-cache, no-transform', 'x-accel-buffering': 'no' }
    : {}
  reply.hijack()
  reply.raw.on('error', () => {})
  // The client decides whether its connection stays open; the library would keep it.
  answer.headers.delete('connection')
  reply.raw.writeHead(answer.status, { ...ours, ...Object.fromEntries(answer.headers), ...unbuffered })
}
