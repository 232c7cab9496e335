import type { FastifyRequest } from 'fastify'
import type { Actor } from '#contract/accounts/audit.ts'
import { userAgentOf } from './user-agent.ts'
import type { Principal } from './principal.ts'

/** The caller of a request as the audit log stores it; without a principal only where the request comes from. */
export function actorOf(
  request: FastifyRequest,
  principal?: Pick<Principal, 'kind' | 'credential_id' | 'user_id' | 'org_id'>,
): Actor {
  return {
    // Empty where the user belongs to none.
    org_id: principal?.org_id || null,
    actor: principal?.user_id ?? null,
    credential: principal ? { kind: principal.kind, id: principal.credential_id } : null,
    ip: request.ip,
    user_agent: request.headers['user-agent'] === undefined ? null : userAgentOf(request),
    request_id: request.id,
  }
}

/**
 * The same, of what concerns a person rather than an organization: a cookie belongs to none. A key or a token does, and
 * its identifier is no other organization's to read.
 */
export function asUser(actor: Actor): Actor {
  return actor.credential?.kind === 'session' ? { ...actor, org_id: null } : actor
}
