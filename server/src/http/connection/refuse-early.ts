import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { ErrorFormat } from '#contract/core/operation.ts'
import { errorFormatOfPath, renderProblem } from '../error-formats.ts'
import { type Admission, Overloaded } from './admission.ts'

/** Larger bodies are left to later checks, which read them within bounds. */
const bodyMax_bytes = 65_536
const formats: ReadonlySet<ErrorFormat> = new Set(['agents', 'control'])
const idMark = 'request-id'

export interface EarlyRefusals {
  admission: Admission
  newRequestId(): string
  /** Headers of every response. */
  headersOf(request_id: string): Record<string, string>
  /** Called for each request that was refused here, because no hook of the framework runs for it. */
  onRefused(request: IncomingMessage, request_id: string, status: number): void
}

/**
 * Refuses API requests that the process cannot serve in time before the framework sees them: with three times as many
 * requests as can be served, refusals by the framework would take a third of the process's capacity (decision 0040).
 * Requests of browsers from other origins, which need CORS headers, requests with large bodies, and requests outside
 * the API are left to the framework.
 */
export function refuseEarly(server: Server, early: EarlyRefusals): void {
  const handlers = server.listeners('request') as RequestListener[]
  const bodies = new Map<ErrorFormat, (request_id: string) => string>()
  server.removeAllListeners('request')
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const format = formatOf(request)
    if (format === undefined || !early.admission.isFull()) {
      for (const handle of handlers) handle.call(server, request, response)
      return
    }
    const problem = new Overloaded()
    const request_id = early.newRequestId()
    const body = bodies.get(format) ?? bodyOf(problem, format)
    bodies.set(format, body)
    const headers = { ...early.headersOf(request_id), ...problem.headers, 'x-response-time': '0ms' }
    response
      .writeHead(problem.status, { ...headers, 'content-type': 'application/json; charset=utf-8' })
      .end(body(request_id))
    early.onRefused(request, request_id, problem.status)
  })
}

/** The error format of a request that may be refused here; undefined for others. */
function formatOf({ url = '', headers }: IncomingMessage): ErrorFormat | undefined {
  if (!url.startsWith('/api/v1/') || headers.origin !== undefined) return undefined
  if (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > bodyMax_bytes)
    return undefined
  const format = errorFormatOfPath(url)
  return formats.has(format) ? format : undefined
}

/** Everything except the request id is the same in every response. */
function bodyOf(problem: Overloaded, format: ErrorFormat): (request_id: string) => string {
  const [before = '', after = ''] = JSON.stringify(renderProblem(problem, format, idMark).body).split(idMark)
  return (request_id) => before + request_id + after
}
