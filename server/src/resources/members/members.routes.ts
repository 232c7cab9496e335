import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/accounts/members.ts'
import { notFound } from '#contract/core/problems.ts'
import { hasScope, roleAllows } from '#contract/core/scopes.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import { findMember, listMembers, type MemberRow } from './members.queries.ts'
import { changeRole, endMembership } from './membership.ts'
import { recordEnd } from './record-end.ts'

/** Routes of members and their roles (spec 5.5, decisions D59, D70). */
export function memberRoutes(app: FastifyInstance, http: HttpContext, { config }: Context): void {
  handle(app, http, operations.listMembers, {
    run: async ({ sql, principal, query }) => {
      const { limit, offset, search, role } = query
      const filter = { org_id: principal.org_id, search, role, by_email: seesAddresses(principal), limit, offset }
      const { members, total } = await listMembers(sql, filter)
      return {
        members: members.map((member) => shown(member, principal)),
        pagination: offsetPagination(total, limit, offset, members.length),
      }
    },
  })

  handle(app, http, operations.getMember, {
    load: ({ sql, principal, params }) => requireMember(sql, principal, params.user_id ?? ''),
    run: async ({ principal, loaded }) => shown(loaded, principal),
  })

  handle(app, http, operations.updateMember, {
    load: ({ sql, principal, params }) => requireMember(sql, principal, params.user_id ?? ''),
    run: async ({ sql, principal, body, loaded, actor }) => {
      const whose = { org_id: principal.org_id, user_id: loaded.user_id }
      const changed = await sql.begin(async (tx) => {
        const { before, after, invitations_revoked } = await changeRole(tx, whose, body.role, principal.user_id)
        if (before.role !== after.role) {
          await recordAudit(tx, actor, {
            action: 'member.updated',
            target: loaded.user_id,
            before: { role: before.role },
            after: { role: after.role },
            detail: { invitations_revoked },
          })
        }
        return after
      })
      return shown(changed, principal)
    },
  })

  handle(app, http, operations.removeMember, {
    load: ({ sql, principal, params }) => requireMember(sql, principal, params.user_id ?? ''),
    run: async ({ sql, principal, loaded, actor }) => {
      const { org_id } = principal
      await sql.begin(async (tx) => {
        const ended = await endMembership(tx, { org_id, user_id: loaded.user_id }, principal.user_id, config.signup)
        await recordEnd(tx, actor, ended)
      })
      return { message: 'Member removed', user_id: loaded.user_id }
    },
  })
}

async function requireMember(sql: Sql, { org_id }: Principal, user_id: string): Promise<MemberRow> {
  const member = isId('user', user_id) ? await findMember(sql, org_id, user_id) : undefined
  if (!member) throw notFound('member_not_found', 'member', user_id.slice(0, 100))
  return member
}

/**
 * Whether the caller sees e-mail addresses and last activity: only if scope and role allow managing members (decision
 * D70), so that an app with read access cannot collect them.
 */
function seesAddresses({ scopes, role }: Principal): boolean {
  return hasScope(scopes, 'organizations:write') && roleAllows(role, 'organizations:write')
}

function shown({ email, last_active, ...member }: MemberRow, principal: Principal) {
  return seesAddresses(principal) || member.user_id === principal.user_id ? { ...member, email, last_active } : member
}
