import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/accounts/oauth.ts'
import { invalid, notFound, type Issue } from '#contract/core/problems.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import {
  deleteClient,
  findClientOf,
  insertClient,
  listClients,
  lockClientOf,
  newClientSecret,
  updateClient,
} from './oauth-clients.queries.ts'
import type { OAuthClientRow } from './oauth.queries.ts'
import { redirectUriError } from './redirect-uris.ts'

/** Registration of OAuth apps by administrators of an organization (decision D77). */
export function oauthClientRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, operations.createOAuthClient, {
    run: async ({ sql, principal, body, actor }) => {
      const { confidential = true, native = false } = body
      checkRedirects(body.redirect_uris, native)
      const client_secret = confidential ? newClientSecret() : null
      return sql.begin(async (tx) => {
        const client = await insertClient(tx, principal.org_id, {
          name: body.name.normalize('NFC'),
          redirect_uris: [...new Set(body.redirect_uris)],
          scopes: [...new Set(body.scopes)],
          native,
          secret: client_secret,
        })
        if (!client) throw new Error('a generated client id is already taken')
        await recordAudit(tx, actor, { action: 'oauth_client.created', target: client.client_id, after: shown(client) })
        return { ...shown(client), ...(client_secret === null ? {} : { client_secret }) }
      })
    },
  })

  handle(app, http, operations.listOAuthClients, {
    run: async ({ sql, principal, query }) => {
      const { limit, offset } = query
      const { clients, total } = await listClients(sql, principal.org_id, { limit, offset })
      return { oauth_clients: clients.map(shown), pagination: offsetPagination(total, limit, offset, clients.length) }
    },
  })

  handle(app, http, operations.getOAuthClient, {
    load: ({ sql, principal, params }) => requireClient(sql, principal, params.client_id ?? ''),
    run: async ({ loaded }) => shown(loaded),
  })

  handle(app, http, operations.updateOAuthClient, {
    load: ({ sql, principal, params }) => requireClient(sql, principal, params.client_id ?? ''),
    run: async ({ sql, principal, body, loaded, actor }) => {
      if (body.redirect_uris) checkRedirects(body.redirect_uris, loaded.native)
      const client_secret = newSecretFor(loaded, body.rotate_secret)
      return sql.begin(async (tx) => {
        const before = await lockClientOf(tx, principal.org_id, loaded.client_id)
        const change = {
          name: body.name?.normalize('NFC'),
          redirect_uris: body.redirect_uris && [...new Set(body.redirect_uris)],
          scopes: body.scopes && [...new Set(body.scopes)],
          secret: client_secret,
        }
        const client = before && (await updateClient(tx, principal.org_id, loaded.client_id, change))
        if (!client) throw notFound('oauth_client_not_found', 'oauth_client', loaded.client_id)
        await recordAudit(tx, actor, {
          action: 'oauth_client.updated',
          target: client.client_id,
          before: shown(before),
          after: shown(client),
          detail: client_secret === undefined ? undefined : { is_secret_changed: true },
        })
        return { ...shown(client), ...(client_secret === undefined ? {} : { client_secret }) }
      })
    },
  })

  handle(app, http, operations.deleteOAuthClient, {
    load: ({ sql, principal, params }) => requireClient(sql, principal, params.client_id ?? ''),
    run: async ({ sql, principal, loaded, actor }) =>
      sql.begin(async (tx) => {
        if (!(await deleteClient(tx, principal.org_id, loaded.client_id)))
          throw notFound('oauth_client_not_found', 'oauth_client', loaded.client_id)
        await recordAudit(tx, actor, {
          action: 'oauth_client.deleted',
          target: loaded.client_id,
          before: shown(loaded),
        })
        return { message: 'OAuth client deleted', client_id: loaded.client_id }
      }),
  })
}

async function requireClient(sql: Sql, principal: Principal, client_id: string): Promise<OAuthClientRow> {
  const client = await findClientOf(sql, principal.org_id, client_id)
  if (!client) throw notFound('oauth_client_not_found', 'oauth_client', client_id.slice(0, 100))
  return client
}

function newSecretFor(client: OAuthClientRow, rotate: boolean | undefined): string | undefined {
  if (!rotate) return undefined
  if (client.secret_hash === null)
    throw invalid({
      field: 'rotate_secret',
      message: 'is not allowed, because a public app has no secret',
      code: 'invalid_choice',
    })
  return newClientSecret()
}

function checkRedirects(uris: readonly string[], native: boolean): void {
  const issues = uris.flatMap((uri, i): Issue[] => {
    const fault = redirectUriError(uri, native)
    return fault === undefined
      ? []
      : [{ field: `redirect_uris[${i}]`, message: fault, code: 'invalid_format', provided: uri.slice(0, 100) }]
  })
  const [first, ...others] = issues
  if (first) throw invalid(first, ...others)
}

/** A client in a response, without the hash of its secret. */
function shown({ secret_hash, org_id: _, ...client }: OAuthClientRow) {
  return { ...client, confidential: secret_hash !== null }
}
