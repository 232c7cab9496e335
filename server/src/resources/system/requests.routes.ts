import type { FastifyInstance } from 'fastify'
import { listRequests } from '#contract/resources/requests.ts'
import type { RecentRequest, RecentRequests } from '../../http/connection/recent-requests.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { nameCredentials } from '../api-keys/credential-names.queries.ts'

/** Route of the recent requests to this process, for the administrators of an organization. */
export function requestRoutes(app: FastifyInstance, http: HttpContext, recent: RecentRequests): void {
  handle(app, http, listRequests, {
    run: async ({ sql, principal, query: { limit, offset, ...filter } }) => {
      const found = recent.of(principal.org_id).filter((request) => matches(request, filter))
      const page = found.slice(offset, offset + limit)
      const names = await nameCredentials(sql, principal, [...new Set(page.map(({ credential_id }) => credential_id))])
      return {
        requests: page.map((request) => ({ ...request, credential_name: names.get(request.credential_id) ?? null })),
        pagination: offsetPagination(found.length, limit, offset, page.length),
      }
    },
  })
}

interface Filter {
  method?: string
  outcome?: string
  path?: string
  credential_id?: string
  request_id?: string
}

function matches(request: RecentRequest, { method, outcome, path, credential_id, request_id }: Filter): boolean {
  return (
    (method === undefined || request.method === method) &&
    (outcome === undefined || outcomeOf(request.status) === outcome) &&
    (path === undefined || request.path.includes(path)) &&
    (credential_id === undefined || request.credential_id === credential_id) &&
    (request_id === undefined || request.request_id === request_id)
  )
}

function outcomeOf(status: number): string {
  return status < 400 ? 'success' : status < 500 ? 'client_error' : 'server_error'
}
