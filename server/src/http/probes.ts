import type { FastifyInstance } from 'fastify'
import type { Sql } from '../platform/database.ts'

/** What a readiness probe asks. */
export interface ProbeContext {
  sql: Sql
  /** False from the moment in which the service begins to stop. */
  isReady: () => boolean
}

/**
 * `/livez`: the process answers. `/readyz`: it can serve, the database too; 503 while starting, draining, or without
 * a database (decision D100).
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
