import type { FastifyRequest } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { actorOf } from '../../http/access/actor.ts'
import { answerConstraints } from '../../platform/postgres/constraints.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { holdSession, type SignedInUser } from '../users/sessions/sessions.queries.ts'
import { insertGrant, rememberConsent } from './oauth.queries.ts'

/** Which app a signed-in user lets in to one of their organizations, and to do what. */
export interface ConsentGrant {
  user: SignedInUser
  client_id: string
  org_id: string
  scopes: string[]
  /** The resource that it asked for; null where it asked for none. */
  resource: string | null
}

/**
 * Lets an app in, in the caller's transaction: the grant, what is remembered about it, and its entry in the audit log. Gives
 * the grant. Refuses who has signed out or left the organization meanwhile, and an app that was deleted in this moment.
 */
export async function grantConsent(tx: Sql, request: FastifyRequest, admission: ConsentGrant): Promise<string> {
  const { user, client_id, org_id, scopes, resource } = admission
  const { user_id, session_id } = user
  // A password change ends sessions, then grants; holding the session keeps this grant from slipping in between.
  if (!(await holdSession(tx, session_id)))
    throw new Problem('insufficient_permissions', undefined, { message: 'You are not signed in any more.' })
  const user_agent = userAgentOf(request)
  const grant = { user_id, org_id, client_id, scopes, resource, ip: request.ip, user_agent }
  const grant_id = await answerConstraints({ oauth_grant_client_id_fkey: appGone }, () => insertGrant(tx, grant))
  if (grant_id === undefined)
    throw new Problem('insufficient_permissions', undefined, {
      message: 'You are not a member of this organization, or it lets in only apps that are registered.',
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

/** Message for an app that is not registered, or no longer. */
export function appGone(): Problem {
  return new Problem('validation_error', undefined, {
    message: 'This page has expired. Go back to the app and start again.',
  })
}
