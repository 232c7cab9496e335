import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/accounts/organization-api-keys.ts'
import { notFound } from '#contract/core/problems.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { isId } from '../../platform/ids.ts'
import { revokeApiKey } from './api-keys.queries.ts'
import { recorded } from './api-keys.routes.ts'
import { findOrganizationApiKey, listOrganizationApiKeys } from './organization-api-keys.queries.ts'

/** Routes of the API keys of all members, for administrators (decision D59). */
export function organizationApiKeyRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, operations.listOrganizationApiKeys, {
    run: async ({ sql, principal, query }) => {
      const { limit, offset, active_only, user_id } = query
      const filter = { active_only, user_id, limit, offset }
      const { api_keys, total } = await listOrganizationApiKeys(sql, principal.org_id, filter)
      return { api_keys, pagination: offsetPagination(total, limit, offset, api_keys.length) }
    },
  })

  handle(app, http, operations.revokeOrganizationApiKey, {
    load: async ({ sql, principal, params: { key_id = '' } }) => {
      const row = isId('key', key_id) ? await findOrganizationApiKey(sql, principal.org_id, key_id) : undefined
      if (!row) throw notFound('api_key_not_found', 'api_key', key_id.slice(0, 100))
      return row
    },
    run: ({ sql, principal: { org_id }, loaded: { user, ...key }, actor }) =>
      sql.begin(async (tx) => {
        const revoked = await revokeApiKey(tx, { org_id, user_id: user.id }, key.id)
        if (!revoked) throw notFound('api_key_not_found', 'api_key', key.id)
        const detail = { owner: user.id }
        await recordAudit(tx, actor, { action: 'api_key.revoked', target: key.id, before: recorded(key), detail })
        return { message: 'API key revoked', key_id: key.id, revoked_at: revoked.revoked_at }
      }),
  })
}
