import type { FastifyRequest } from 'fastify'
import type { Problem } from '#contract/core/problems.ts'
import type { Sql } from '../platform/postgres/database.ts'
import type { Secrets } from '../platform/crypto/secrets.ts'
import type { AuthenticationSettings } from './access/authenticate.ts'
import type { Admission } from './connection/admission.ts'
import type { OpenStreams } from './connection/open-streams.ts'
import type { RecentCallers } from './access/recent-callers.ts'
import type { Principal } from './access/principal.ts'
import type { StreamRights } from './access/stream-rights.ts'

/** A request that was answered with 500. */
export interface FailedRequest {
  id: string
  /** Undefined if the request was not authenticated. */
  principal: Pick<Principal, 'org_id' | 'user_id'> | undefined
  /** The path parameters as sent. */
  params: unknown
  /** Further ids of resources that the request concerned. */
  resources?: string[]
}

/** What handling a request needs, handed in by `app.ts`. */
export interface HttpContext {
  sql: Sql
  secrets: Secrets
  /** How long a request waits for a shared transaction. */
  shareWait_ms: number
  /** Refuses requests that the process cannot serve in time. */
  admission: Admission
  authentication: AuthenticationSettings
  recent_callers: RecentCallers
  open_streams: OpenStreams
  stream_rights: StreamRights
  /** Scheme, host and port under which browsers know the service. */
  public_origin: () => string
  /** Called for a lease token that this service did not issue. */
  onForgedLease?: (request: FastifyRequest) => void
  /** Checks a body that takes long to check; runs before any work and outside of any transaction. */
  judgeBody?: (body: unknown, party: { org_id: string; project_id: string }) => Promise<void>
  /** Called for every 500, which becomes an event (decision D94). */
  onInternalError?: (problem: Problem, request: FailedRequest) => void
}
