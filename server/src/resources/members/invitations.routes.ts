import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/accounts/invitations.ts'
import { bounds } from '#contract/core/limits.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { isId } from '../../platform/ids.ts'
import { findInvitation, insertInvitation, listInvitations, revokeInvitation } from './invitations.queries.ts'

/** Routes that manage invitations. Accepting is in `users/join.ts`. */
export function invitationRoutes(app: FastifyInstance, http: HttpContext, { public_url }: Context): void {
  handle(app, http, operations.createInvitation, {
    run: async ({ sql, principal, body, actor }) => {
      const { role, email = null, expires_in_seconds = operations.invitationLifetime_seconds.default } = body
      const { org_id, user_id } = principal
      return sql.begin(async (tx) => {
        const made = await insertInvitation(tx, { org_id, created_by: user_id, role, email, expires_in_seconds })
        if (made === 'forbidden') throw mayNot(role)
        if (made === 'full') throw tooMany()
        const { row, token } = made
        await recordAudit(tx, actor, {
          action: 'invitation.created',
          target: row.id,
          after: { role, email, expires_at: row.expires_at },
        })
        return { ...row, url: `${public_url()}/invite/${token}` }
      })
    },
  })

  handle(app, http, operations.listInvitations, {
    run: async ({ sql, principal, query }) => {
      const { limit, offset, status } = query
      const { invitations, total } = await listInvitations(sql, principal.org_id, { status, limit, offset })
      return { invitations, pagination: offsetPagination(total, limit, offset, invitations.length) }
    },
  })

  handle(app, http, operations.revokeInvitation, {
    load: async ({ sql, principal, params: { invitation_id = '' } }) => {
      const row = isId('inv', invitation_id) ? await findInvitation(sql, principal.org_id, invitation_id) : undefined
      if (!row) throw notFound('invitation_not_found', 'invitation', invitation_id.slice(0, 100))
      return row
    },
    run: async ({ sql, principal, loaded, actor }) =>
      sql.begin(async (tx) => {
        const row = await revokeInvitation(tx, principal.org_id, loaded.id)
        if (!row) throw notPending((await findInvitation(tx, principal.org_id, loaded.id)) ?? loaded)
        await recordAudit(tx, actor, {
          action: 'invitation.revoked',
          target: row.id,
          before: { role: row.role, email: row.email },
        })
        return { message: 'Invitation revoked', invitation_id: row.id, revoked_at: row.revoked_at }
      }),
  })
}

function mayNot(role: string): Problem {
  return new Problem('insufficient_permissions', undefined, {
    message: role === 'owner' ? 'Only owners may invite owners.' : 'Only owners and admins may invite.',
  })
}

function tooMany(): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'invitation', conflicting_field: 'status', conflicting_value: 'pending' },
    {
      message: `The organization has the maximum of ${bounds.invitations_pending} pending invitations. Revoke some first.`,
    },
  )
}

function notPending({ status }: { status: string }): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'invitation', conflicting_field: 'status', conflicting_value: status },
    { message: `The invitation is already ${status}.` },
  )
}
