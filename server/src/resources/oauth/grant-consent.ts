import type { FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { actorOf } from '../../http/access/actor.ts'
import { answerConstraints } from '../../platform/postgres/constraints.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { holdSession, type SignedInUser } from '../users/sessions/sessions.queries.ts'
import { insertGrant, rememberConsent } from './oauth.queries.ts'

/** A user's consent for an app in one of their organizations, with the scopes. */
export interface ConsentGrant {
  user: SignedInUser
  client_id: string
  org_id: string
  scopes: string[]
  /** The requested resource; null if none was requested. */
  resource: string | null
}

/**
 * Grants access to an app in the caller's transaction: the grant, the remembered consent, and the audit log entry.
 * Returns the grant id. Throws if the user has signed out or left the organization in the meantime, or if the app was
 * deleted.
 */
export async function grantConsent(tx: Sql, request: FastifyRequest, admission: ConsentGrant): Promise<string> {
  const { user, client_id, org_id, scopes, resource } = admission
  const { user_id, session_id } = user
  // A password change ends sessions, then grants. Locking the session prevents a new grant between the two.
  if (!(await holdSession(tx, session_id)))
    throw new Problem('insufficient_permissions', undefined, { message: 'You are no longer signed in.' })
  const user_agent = userAgentOf(request)
  const grant = { user_id, org_id, client_id, scopes, resource, ip: request.ip, user_agent }
  const grant_id = await answerConstraints({ oauth_grant_client_id_fkey: appGone }, () => insertGrant(tx, grant))
  if (grant_id === undefined)
    throw new Problem('insufficient_permissions', undefined, {
      message: 'You are not a member of this organization, or it allows only registered apps.',
    })
  await rememberConsent(tx, user_id, client_id, { org_id, scopes })
  const actor = actorOf(request, { kind: 'session', credential_id: session_id, user_id, org_id })
  await recordAudit(tx, actor, {
    action: 'oauth_grant.created',
    target: grant_id,
    after: { client_id, scopes, ...(resource !== null && { resource }) },
  })
  return grant_id
}

/** The problem of an app that is unknown or was deleted. */
export function appGone(): Problem {
  return new Problem('validation_error', undefined, {
    message: 'This page has expired. Go back to the app and start again.',
  })
}
