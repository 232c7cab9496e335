import type { FastifyInstance } from 'fastify'
import type { Actor } from '#contract/accounts/audit.ts'
import { notFound } from '#contract/core/problems.ts'
import * as operations from '#contract/accounts/sessions.ts'
import type { Context } from '../../../context.ts'
import { recordAudit } from '../../../events/audit/audit.ts'
import { asUser } from '../../../http/access/actor.ts'
import { handle } from '../../../http/handle.ts'
import type { HttpContext } from '../../../http/http-context.ts'
import type { Principal } from '../../../http/access/principal.ts'
import { clearSessionCookie } from '../../../http/pages/session-cookie.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { isId } from '../../../platform/ids.ts'
import { endGrantOf, endGrantsOf, forgetConsent, type GrantOwner } from '../../oauth/oauth.queries.ts'
import { endSession, endSessionsOf, findSession, listSessions } from './sessions.queries.ts'

/** Lists and ends cookie sign-ins and OAuth grants (spec 4.3, decisions D63, D68). */
export function sessionRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  handle(app, http, operations.getSession, {
    run: async ({ sql, principal }) => {
      const { last_activity: _, ...session } = await requireSession(sql, principal.user_id, principal.credential_id)
      return { ...session, scopes: principal.scopes }
    },
  })

  handle(app, http, operations.listSessions, {
    run: async ({ sql, principal, query: { limit, offset = 0 } }) => {
      const sessions = await listSessions(sql, principal.user_id, { limit, offset })
      return {
        sessions: sessions.map(({ user_id: _, ...session }) => ({
          ...session,
          is_current: session.id === principal.credential_id,
        })),
      }
    },
  })

  handle(app, http, operations.deleteSession, {
    load: ({ sql, principal, params }) => requireSession(sql, principal.user_id, params.session_id ?? ''),
    run: async ({ sql, principal, loaded, actor }) => {
      const ended = await sql.begin((tx) => endOne(tx, principal, loaded.id, actor))
      if (!ended) throw notFound('session_not_found', 'session', loaded.id)
      return { message: 'Session revoked', session_id: loaded.id }
    },
    finish: async ({ principal, loaded }, answer, reply) => {
      if (principal.credential_id === loaded.id) clearSessionCookie(reply, context.public_url().startsWith('https:'))
      return answer
    },
  })

  handle(app, http, operations.deleteSessions, {
    run: async ({ sql, principal, actor }) => {
      const revoked_count = await sql.begin(async (tx) => {
        // Lock order: sessions before grants. A concurrent consent locks the session, so its new grant is seen.
        const sessions = await endSessionsOf(tx, principal.user_id, principal.credential_id)
        const grants = await endGrantsOf(tx, principal.user_id, principal.credential_id)
        for (const grant of grants) await recordGrantEnd(tx, actor, grant)
        if (sessions + grants.length > 0) {
          await recordAudit(tx, asUser(actor), {
            action: 'user.sessions_ended',
            target: principal.user_id,
            detail: { sessions, grants: grants.length },
          })
        }
        return sessions + grants.length
      })
      return { message: 'All other sessions revoked', revoked_count }
    },
  })
}

async function requireSession(sql: Sql, user_id: string, id: string) {
  const session = isId('sess', id) ? await findSession(sql, user_id, id) : undefined
  if (!session) throw notFound('session_not_found', 'session', id.slice(0, 100))
  return session
}

async function endOne(tx: Sql, principal: Principal, id: string, actor: Actor): Promise<boolean> {
  if (await endSession(tx, principal.user_id, id)) {
    await recordAudit(tx, asUser(actor), { action: 'session.ended', target: id })
    return true
  }
  const grant = await endGrantOf(tx, principal.user_id, id)
  if (!grant) return false
  await recordGrantEnd(tx, actor, grant)
  return true
}

/** Records that a user revoked an app; the app needs a new consent to get access again. */
async function recordGrantEnd(tx: Sql, actor: Actor, grant: GrantOwner): Promise<void> {
  await forgetConsent(tx, grant.user_id, grant.client_id)
  await recordAudit(
    tx,
    { ...actor, org_id: grant.org_id },
    {
      action: 'oauth_grant.revoked',
      target: grant.id,
      detail: { reason: 'ended_by_user', client_id: grant.client_id },
    },
  )
}
