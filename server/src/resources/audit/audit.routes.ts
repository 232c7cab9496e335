import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { exportAuditEntries, listAuditEntries as listOperation } from '#contract/accounts/audit-log.ts'
import type { QueryOf } from '#contract/core/operation.ts'
import { Answer, handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp, offsetPagination } from '../../http/lists/pagination.ts'
import { emptyPeriod } from '../../http/lists/period.ts'
import type { Principal } from '../../http/access/principal.ts'
import { newId } from '../../platform/ids.ts'
import { exportLines } from './audit-export.ts'
import { listAuditEntries, type AuditFilter } from './audit.queries.ts'

/** Routes of the audit log, for the administrators of an organization. */
export function auditRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, listOperation, {
    run: async ({ sql, principal, query: { limit, offset, ...query } }) => {
      const { entries, total } = await listAuditEntries(sql, filterOf(query, principal), { limit, offset })
      return { entries, pagination: offsetPagination(total, limit, offset, entries.length) }
    },
  })

  handle(app, http, exportAuditEntries, {
    run: async ({ query, principal, occupy }) => {
      const filter = filterOf(query, principal)
      await occupy()
      return filter
    },
    finish: async ({ sql, request, header }, { status, body }, reply) => {
      const last = newId('aud')
      header('content-type', 'application/x-ndjson')
      header('content-disposition', 'attachment; filename="audit.ndjson"')
      header('cache-control', 'no-store')
      if (request.method === 'HEAD') return new Answer(status, '')
      const lines = exportLines(sql, body as AuditFilter, { last, onStall: () => void reply.raw.destroy() })
      return new Answer(status, Readable.from(lines, { objectMode: false }))
    },
  })
}

function filterOf(query: QueryOf<typeof exportAuditEntries>, { org_id }: Principal): AuditFilter {
  const { start_time, end_time, ...filter } = query
  const period = { start_time: timestamp(start_time), end_time: timestamp(end_time) }
  if (period.start_time !== undefined && period.end_time !== undefined && period.start_time >= period.end_time)
    throw emptyPeriod(end_time)
  return { ...filter, ...period, org_id }
}
