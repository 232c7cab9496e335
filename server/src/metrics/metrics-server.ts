import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import type { MetricsPage } from './metrics-page.ts'

/** Scrapers are few; further connections are closed. */
const connectionsMax = 20
/** A request is one line and a few headers. */
const request_ms = 5000
/** A reader that takes nothing for so long is closed, and one that takes little after `answer_ms` too. */
const silence_ms = 10_000
const answer_ms = 30_000

/** A server for the metrics alone, on a separate port that users of the API cannot reach (decision D100). */
export interface MetricsServer {
  port: number
  stop(): Promise<void>
}

/**
 * Serves the page at `/metrics`, to GET and HEAD. Rejects as `listen` does (`EADDRINUSE`). Clients cannot block it:
 * slow ones are closed, and it shares only the process with the API's server.
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
  // A service that cannot go on starting need not remember that this one listens.
  server.unref()
  // Its own, where processes of one machine share the port of the API.
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
  if (path !== '/metrics') return say(response, 404, 'There is nothing here but /metrics.\n')
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD')
    return say(response, 405, 'The metrics can only be read.\n')
  }
  say(response, 200, await page.text(), page.content_type)
}

/** The body of an answer to HEAD is left out by Node. */
function say(response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) }).end(text)
}
