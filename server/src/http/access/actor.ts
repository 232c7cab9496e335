import type { FastifyRequest } from 'fastify'
import type { Actor } from '#contract/accounts/audit.ts'
import { userAgentOf } from './user-agent.ts'
import type { Principal } from './principal.ts'

/** The caller of a request for the audit log; without a principal only where the request came from. */
export function actorOf(
  request: FastifyRequest,
  principal?: Pick<Principal, 'kind' | 'credential_id' | 'user_id' | 'org_id'>,
): Actor {
  return {
    // Empty if the user belongs to no organization.
    org_id: principal?.org_id || null,
    actor: principal?.user_id ?? null,
    credential: principal ? { kind: principal.kind, id: principal.credential_id } : null,
    ip: request.ip,
    user_agent: request.headers['user-agent'] === undefined ? null : userAgentOf(request),
    request_id: request.id,
  }
}

/**
 * The actor of an action on a person rather than on an organization. A cookie belongs to no organization; a key or a
 * token does, and other organizations must not see its id.
 */
export function asUser(actor: Actor): Actor {
  return actor.credential?.kind === 'session' ? { ...actor, org_id: null } : actor
}
