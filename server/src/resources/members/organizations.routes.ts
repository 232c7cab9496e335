import type { FastifyInstance } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import * as operations from '#contract/accounts/organizations.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { endGrantsOfDocuments } from '../oauth/oauth.queries.ts'
import { insertOrganization } from '../users/users.queries.ts'
import { findRole } from './members.queries.ts'
import { endMembership } from './membership.ts'
import {
  countAdministered,
  findOrganization,
  holdUser,
  updateOrganization,
  type OrganizationRow,
} from './organizations.queries.ts'
import { recordEnd } from './record-end.ts'

/** Routes that read, change, create and leave an organization (decision D62). */
export function organizationRoutes(app: FastifyInstance, http: HttpContext, { config }: Context): void {
  handle(app, http, operations.getOrganization, {
    run: ({ sql, principal }) => requireOrganization(sql, principal.org_id, principal.user_id),
  })

  handle(app, http, operations.updateOrganization, {
    run: ({ sql, principal, body, actor }) =>
      sql.begin(async (tx) => {
        const { org_id, user_id } = principal
        const before = await requireOrganization(tx, org_id, user_id)
        const { client_documents } = body
        await updateOrganization(tx, org_id, { name: body.name?.normalize('NFC'), client_documents })
        const ended = client_documents === false ? await endGrantsOfDocuments(tx, org_id) : []
        const after = await requireOrganization(tx, org_id, user_id)
        await recordAudit(tx, actor, {
          action: 'organization.updated',
          target: org_id,
          before: changedOf(before, body),
          after: changedOf(after, body),
          ...(ended.length > 0 && { detail: { ended_oauth_grants: ended.map(({ id }) => id) } }),
        })
        return after
      }),
  })

  handle(app, http, operations.createOrganization, {
    run: ({ sql, principal, body, actor }) =>
      sql.begin(async (tx) => {
        await holdUser(tx, principal.user_id)
        const { owned, administered } = await countAdministered(tx, principal.user_id)
        if (config.signup !== 'open' && administered === 0) throw notAdministrator()
        if (owned >= bounds.organizations_owned) throw tooMany()
        const { id, name } = await insertOrganization(tx, body.name.normalize('NFC'), principal.user_id)
        await recordAudit(
          tx,
          { ...actor, org_id: id },
          { action: 'organization.created', target: id, after: { name }, detail: { owner: principal.user_id } },
        )
        return requireOrganization(tx, id, principal.user_id)
      }),
  })

  handle(app, http, operations.leaveOrganization, {
    run: async ({ sql, principal: { user_id }, body: { organization_id }, actor }) => {
      await sql.begin(async (tx) => {
        if (!(await findRole(tx, organization_id, user_id)))
          throw notFound('organization_not_found', 'organization', organization_id)
        const ended = await endMembership(tx, { org_id: organization_id, user_id }, user_id, config.signup)
        await recordEnd(tx, { ...actor, org_id: organization_id }, ended)
      })
      return { message: 'Organization left', organization_id }
    },
  })
}

/** The members of an organization for the audit log: the name, and `client_documents` if it was changed. */
function changedOf({ name, client_documents }: OrganizationRow, asked: { client_documents?: boolean | undefined }) {
  return { name, ...(asked.client_documents !== undefined && { client_documents }) }
}

/** The organization of the caller; throws if they are no longer a member. */
async function requireOrganization(sql: Sql, org_id: string, user_id: string) {
  const organization = await findOrganization(sql, org_id, user_id)
  if (!organization) throw notFound('organization_not_found', 'organization', org_id)
  return organization
}

function notAdministrator(): Problem {
  return new Problem('insufficient_permissions', undefined, {
    message: 'Only owners and admins of an organization may create another one on this service.',
  })
}

function tooMany(): Problem {
  return new Problem(
    'resource_conflict',
    { resource_type: 'organization', conflicting_field: 'owner', conflicting_value: bounds.organizations_owned },
    { message: `You own ${bounds.organizations_owned} organizations, which is the maximum.` },
  )
}
