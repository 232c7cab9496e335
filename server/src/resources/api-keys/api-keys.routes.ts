import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/accounts/api-keys.ts'
import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import { operations as everyOperation } from '#contract/operations.ts'
import { expandScopes, hasScope, requiredScope, roleAllows, scopesOfRole, type Scope } from '#contract/core/scopes.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { insufficientScope } from '../../http/access/authorize.ts'
import { etag, requireMatch, timeRevision } from '../../http/etag.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp, offsetPagination } from '../../http/lists/pagination.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import { listCalls, sumUsage, type CallRow } from './activity.queries.ts'
import {
  findApiKey,
  findUsage,
  insertApiKey,
  listApiKeys,
  newApiKey,
  revokeApiKey,
  updateApiKey,
  type ApiKeyRow,
} from './api-keys.queries.ts'

/** Routes of the caller's API keys (spec 4.1, decisions D52–D60). */
export function apiKeyRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, operations.createApiKey, {
    run: async ({ sql, principal, body, actor, header }) => {
      const scopes = grantableScopes(principal, body.scopes)
      const expires_at = timestamp(body.expires_at) ?? null
      const key = newApiKey()
      const content = {
        name: body.name.normalize('NFC'),
        description: body.description ?? '',
        scopes,
        expires_at,
        queues: grantableQueues(principal, body.queues),
      }
      const row = await sql.begin(async (tx) => {
        const created = await insertApiKey(tx, principal, key, content)
        await recordAudit(tx, actor, { action: 'api_key.created', target: created.id, after: created })
        return created
      })
      header('etag', etag(timeRevision(row)))
      const { key_preview: _, ...shown } = row
      return { ...shown, key }
    },
  })

  handle(app, http, operations.listApiKeys, {
    run: async ({ sql, principal, query }) => {
      const { limit, offset, active_only } = query
      const { api_keys, total } = await listApiKeys(sql, principal, { active_only, limit, offset })
      return { api_keys, pagination: offsetPagination(total, limit, offset, api_keys.length) }
    },
  })

  handle(app, http, operations.getApiKey, {
    load: ({ sql, principal, params }) => requireApiKey(sql, principal, params.key_id!),
    run: async ({ sql, loaded, header }) => {
      header('etag', etag(timeRevision(loaded)))
      return { ...loaded, usage_stats: await findUsage(sql, loaded.id) }
    },
  })

  handle(app, http, operations.getApiKeyActivity, {
    load: ({ sql, principal, params }) => requireApiKey(sql, principal, params.key_id!),
    run: async ({ sql, loaded }) => {
      const [calls, usage] = await Promise.all([listCalls(sql, loaded.id), sumUsage(sql, loaded.id)])
      return { calls: calls.flatMap(callView), usage }
    },
  })

  handle(app, http, operations.updateApiKey, {
    load: ({ sql, principal, params }) => requireApiKey(sql, principal, params.key_id!),
    run: async ({ sql, principal, body, loaded, actor, header, request }) => {
      const { name, queues } = body
      if ([name, body.description, body.scopes, queues].every((member) => member === undefined)) {
        throw invalid({ field: 'body', message: 'name, description, scopes or queues is required', code: 'required' })
      }
      const scopes = body.scopes && grantableScopes(principal, body.scopes)
      const description = body.description === null ? '' : body.description
      const content = {
        ...{ name: name?.normalize('NFC'), description, scopes },
        queues: queues && grantableQueues(principal, queues),
      }
      return sql.begin(async (tx) => {
        const before = await findApiKey(tx, principal, loaded.id, { lock: true })
        if (before) requireMatch(request.headers['if-match'], timeRevision(before))
        const row = before && (await updateApiKey(tx, principal, loaded.id, content))
        if (!row) throw notFound('api_key_not_found', 'api_key', loaded.id)
        await recordAudit(tx, actor, { action: 'api_key.updated', target: row.id, before, after: row })
        header('etag', etag(timeRevision(row)))
        return row
      })
    },
  })

  handle(app, http, operations.deleteApiKey, {
    load: ({ sql, principal, params }) => requireApiKey(sql, principal, params.key_id!),
    run: ({ sql, principal, loaded, actor, request }) =>
      sql.begin(async (tx) => {
        const before = await findApiKey(tx, principal, loaded.id, { lock: true })
        if (before) requireMatch(request.headers['if-match'], timeRevision(before))
        const revoked = await revokeApiKey(tx, principal, loaded.id)
        if (!revoked) throw notFound('api_key_not_found', 'api_key', loaded.id)
        await recordAudit(tx, actor, { action: 'api_key.revoked', target: loaded.id, before: recorded(loaded) })
        return { message: 'API key revoked', key_id: loaded.id, revoked_at: revoked.revoked_at }
      }),
  })
}

/** A key for the audit log, without `last_ip`, which is not stored beyond the next request. */
export function recorded<Row extends Partial<Pick<ApiKeyRow, 'last_ip'>>>({ last_ip: _, ...key }: Row) {
  return key
}

const operationsById = new Map(everyOperation.map((operation) => [operation.id, operation]))

/** A call with the scope that its operation requires now; undefined for an operation that no longer exists. */
function callView({ operation, ...call }: CallRow) {
  const known = operationsById.get(operation)
  return known ? [{ operation, required_scope: known.scope && requiredScope(known.scope), ...call }] : []
}

/** A key of the caller; throws 404 for any other (decision D59). */
export async function requireApiKey(sql: Sql, principal: Principal, id: string) {
  const row = isId('key', id) ? await findApiKey(sql, principal, id) : undefined
  if (!row) throw notFound('api_key_not_found', 'api_key', id.slice(0, 100))
  return row
}

/**
 * The scopes without duplicates. Throws 403 unless the caller has all of them by its own scopes and its role, so that
 * no key can do more than its creator (decisions D53, D70).
 */
export function grantableScopes(principal: Principal, wanted: readonly Scope[]): Scope[] {
  const scopes = [...new Set(wanted)]
  const lacking = scopes.filter((scope) => !holds(principal, scope))
  if (lacking.length > 0) throw insufficientScope(lacking, principal.scopes)
  return scopes
}

/** The queues of a new key: a subset of those of the calling key. Default: those of the calling key. */
function grantableQueues(principal: Principal, wanted: readonly string[] | undefined): string[] | undefined {
  if (wanted === undefined) return principal.queues
  requireQueues(principal, wanted)
  return [...new Set(wanted)]
}

/** Throws 403 unless the calling key may claim from these queues; undefined stands for all. */
export function requireQueues({ queues: own }: Principal, wanted: readonly string[] | undefined): void {
  const closed = own && wanted?.filter((queue) => !own.includes(queue))
  if (!own || closed?.length === 0) return
  throw new Problem('insufficient_permissions', undefined, {
    message: closed
      ? `The calling key may not claim from ${closed.join(', ')}.`
      : `The calling key may claim only from ${own.join(', ')}.`,
  })
}

function holds(principal: Principal, scope: Scope): boolean {
  if (scope === 'admin') return hasScope(principal.scopes, 'admin') && roleAllows(principal.role, 'admin')
  const held = expandScopes(principal.scopes)
  const allowed = scopesOfRole(principal.role)
  return [...expandScopes([scope])].every((fine) => held.has(fine) && allowed.has(fine))
}
