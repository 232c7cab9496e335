import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'
import { Problem } from '#contract/core/problems.ts'
import { buckets } from '#contract/core/limits.ts'
import { LiveList } from '../platform/memory/live-list.ts'
import type { Instruments } from './instruments.ts'

/** nginx's status for a client that closed the connection before the response. */
const clientGone = 499

/** Measures the requests of a server. */
export interface RequestObserver {
  /** Adds its hooks; must be called before routes and other hooks that may respond. */
  observe(app: FastifyInstance): void
  /** Counts a request without hooks: it was malformed, or refused before its operation was known. */
  unrouted(method: string, status: number): void
}

/** Counts and times every request, from its headers to the end of its response or connection. */
export function observeRequests(meters: Instruments): RequestObserver & { open: () => OpenRequests } {
  const open = new LiveList<FastifyRequest>()
  return {
    observe(app) {
      app.addHook('onRequest', (request, reply, next) => {
        const started_ms = performance.now()
        const place = open.add(request)
        reply.raw.once('close', () => {
          open.remove(place)
          count(meters, request, reply.raw, performance.now() - started_ms)
        })
        next()
      })
      app.addHook('onError', (_request, _reply, error: unknown, next) => {
        if (error instanceof Problem && error.status === 429)
          meters.cadre_http_rate_limited_total.inc({ bucket: bucketOf(error) })
        next()
      })
    },
    unrouted: (method, status) =>
      meters.cadre_http_requests_total.inc({ operation: 'unknown', method: methodOf(method), status }),
    open() {
      const streams = open.values().filter(({ is_long }) => is_long).length
      return { requests: open.size - streams, streams }
    },
  }
}

/** Numbers of open requests without streams and waits, and of streams and waits. */
export interface OpenRequests {
  requests: number
  streams: number
}

function count(meters: Instruments, request: FastifyRequest, response: ServerResponse, duration_ms: number): void {
  const operation = operationOf(request)
  const status = response.headersSent ? response.statusCode : clientGone
  meters.cadre_http_requests_total.inc({ operation, method: methodOf(request.method), status })
  if (!request.is_long) meters.cadre_http_request_duration_seconds.observe({ operation }, duration_ms / 1000)
}

/** One label for each route, and one for everything else. */
function operationOf({ is404, routeOptions }: FastifyRequest): string {
  if (is404) return 'unknown'
  return routeOptions.config.operation?.id ?? routeOptions.url ?? 'unknown'
}

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

function methodOf(method: string): string {
  return methods.includes(method) ? method : 'other'
}

function bucketOf({ details }: Problem): string {
  const bucket = typeof details === 'object' && details !== null && 'bucket' in details ? String(details.bucket) : ''
  return Object.hasOwn(buckets, bucket) || bucket === 'tasks.open_streams' ? bucket : 'other'
}
