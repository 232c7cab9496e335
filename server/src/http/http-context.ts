import type { FastifyRequest } from 'fastify'
import type { Problem } from '#contract/problems.ts'
import type { Sql } from '../platform/database.ts'
import type { Secrets } from '../platform/secrets.ts'
import type { AuthenticationSettings } from './authenticate.ts'
import type { OpenStreams } from './open-streams.ts'
import type { StreamRights } from './stream-rights.ts'

/** What handling a request needs, handed in by `app.ts`. */
export interface HttpContext {
  sql: Sql
  secrets: Secrets
  authentication: AuthenticationSettings
  open_streams: OpenStreams
  stream_rights: StreamRights
  /** Scheme, host and port under which browsers know the service. */
  public_origin: () => string
  /** Told about every 500, to make it an event (decision D94). */
  onInternalError?: (problem: Problem, request: FastifyRequest) => void
}
