import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { MetricsPage } from './metrics-page.ts'

/** Maximum number of connections, because scrapers are few; further ones are closed. */
const connectionsMax = 20
/** Maximum time to receive a request. */
const request_ms = 5000
/** A connection is closed after this time without traffic, or if a response takes longer than `answer_ms`. */
const silence_ms = 10_000
const answer_ms = 30_000

/** The server of the metrics page, on a separate port that users of the API cannot reach (decision D100). */
export interface MetricsServer {
  port: number
  stop(): Promise<void>
}

/**
 * Serves the page at `/metrics` for GET and HEAD. Rejects like `listen` (`EADDRINUSE`). Slow clients cannot block it,
 * because their connections are closed.
 */
export async function serveMetrics(
  page: Pick<MetricsPage, 'text' | 'content_type'>,
  { host, port, log }: { host: string; port: number; log: Logger },
): Promise<MetricsServer> {
  const server = createServer(
    {
      headersTimeout: request_ms,
      requestTimeout: request_ms,
      connectionsCheckingInterval: 1000,
      keepAliveTimeout: 60_000,
    },
    (request, response) => {
      response.setHeader('x-content-type-options', 'nosniff')
      response.setHeader('cache-control', 'no-store')
      const deadline = setTimeout(() => response.destroy(), answer_ms)
      response.once('close', () => clearTimeout(deadline))
      answer(page, request, response).catch((error: unknown) => {
        log.error({ err: error }, 'failed to render metrics')
        if (response.headersSent) response.destroy()
        else say(response, 500, 'Failed to render metrics.\n')
      })
    },
  )
  server.maxConnections = connectionsMax
  server.timeout = silence_ms
  // A failed start of the service need not stop this server for the process to exit.
  server.unref()
  // Processes of one machine may share the port of the API, but not this one.
  server.listen({ port, host, exclusive: true })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(
  page: Pick<MetricsPage, 'text' | 'content_type'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [path] = (request.url ?? '').split('?', 1)
  if (path !== '/metrics') return say(response, 404, 'Not found. The metrics are at /metrics.\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return say(response, 405, 'Method not allowed. Use GET or HEAD.\n')
  }
  say(response, 200, await page.text(), page.content_type)
}

/** Sends a text; Node omits the body of a response to HEAD. */
function say(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text)
}
