import Fastify, { type FastifyInstance } from 'fastify'
import type { Sql } from '../../platform/postgres/database.ts'

/** Enough for probes, which are few and short. */
const connectionsMax = 100
const request_ms = 5000

/** What a readiness probe checks. */
export interface ProbeContext {
  /**
   * The pool for authentication: the connections for requests may all be waiting for locks, which is not a failure of
   * the process.
   */
  sql: Sql
  /** False from the moment when the service begins to stop. */
  isReady: () => boolean
}

/**
 * `/livez`: the process responds. `/readyz`: it can serve requests, including the database; 503 while it starts or
 * drains, or without a database (decision D100).
 */
export function probeRoutes(app: FastifyInstance, { sql, isReady }: ProbeContext): void {
  app.get('/livez', async () => ({ status: 'ok' }))
  app.get('/readyz', async (_request, reply) => {
    const database =
      isReady() &&
      (await sql`select 1`.then(
        () => true,
        () => false,
      ))
    if (database) return { status: 'ok' }
    return reply
      .code(503)
      .header('retry-after', '1')
      .send({ status: isReady() ? 'database unreachable' : 'not ready' })
  })
}

/** The server of a process without the API: probes, and 404 for everything else. It does not listen yet. */
export function buildProbes(context: ProbeContext): FastifyInstance {
  const app = Fastify({ logger: false, requestTimeout: request_ms, forceCloseConnections: 'idle' })
  app.server.maxConnections = connectionsMax
  probeRoutes(app, context)
  app.setNotFoundHandler(async (_request, reply) =>
    reply.code(404).send({ status: 'this process works on tasks and has no API; it answers /livez and /readyz' }),
  )
  return app
}
