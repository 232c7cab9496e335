import type { FastifyInstance } from 'fastify'
import { buckets, retention_days, type Bucket, type BucketName } from '#contract/core/limits.ts'
import { fileBounds } from '#contract/resources/files.ts'
import { getRateLimits, listRateLimitRefusals, type RetentionKind } from '#contract/resources/rate-limits.ts'
import type { Context } from '../../context.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { Principal } from '../../http/access/principal.ts'
import { limitsOf, type RateSettings } from '../../http/access/rate-limit.ts'
import { timestamp, offsetPagination } from '../../http/lists/pagination.ts'
import { nameCredentials, seesAllCredentials } from '../api-keys/credential-names.queries.ts'
import {
  listRefusals,
  readStanding,
  readStored,
  readWindows,
  type RunningWindows,
  type StandingRow,
} from './rate-limits.queries.ts'

/** The limits of a credential and their use (spec 8.1). Reading them counts like any other request. */
export function rateLimitRoutes(app: FastifyInstance, http: HttpContext, { config }: Context): void {
  const { rates, tokens_per_hour } = http.authentication

  handle(app, http, getRateLimits, {
    run: async ({ sql, principal }) => {
      const [rows, running, stored] = await Promise.all([
        readStanding(sql, principal.subject),
        readWindows(sql, principal.subject),
        seesAllCredentials(principal) ? readStored(sql) : undefined,
      ])
      const keeps = (kind: RetentionKind, days: number | null, quota_bytes: number | null = null) => ({
        kind,
        days,
        quota_bytes,
        bytes: stored?.get(kind) ?? null,
      })
      return {
        is_enforced: rates.enabled,
        limits: [
          ...requestLimits(rows, running, rates, principal),
          {
            name: 'tokens',
            window: 'hour',
            ...standing(tokens_per_hour, running.tokens_used),
            resets_at: running.hour_ends_at,
          },
        ],
        refusals: refusalsOf(rows),
        retention: [
          keeps('tasks', config.task_retention_days || null),
          keeps('files', fileBounds.unused_days, config.files_max_bytes_project),
          keeps('agent_logs', config.log_retention_days),
          ...Object.entries(retention_days).map(([kind, days]) => keeps(kind as keyof typeof retention_days, days)),
        ],
      }
    },
  })
}

/** Requests that limits refused, by hour. */
export function refusalRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, listRateLimitRefusals, {
    run: async ({ sql, principal, query }) => {
      const { limit, offset, name } = query
      const period = { start_time: timestamp(query.start_time), end_time: timestamp(query.end_time) }
      const { refusals, total } = await listRefusals(sql, {
        ...period,
        org_id: principal.org_id,
        user_id: seesAllCredentials(principal) ? undefined : principal.user_id,
        bucket: name,
        limit,
        offset,
      })
      const ids = [...new Set(refusals.map(({ subject }) => subject))]
      const names = await nameCredentials(sql, principal, ids)
      return {
        refusals: refusals.map(({ subject, ...refusal }) => ({
          ...refusal,
          credential_id: subject,
          credential_name: names.get(subject) ?? null,
        })),
        pagination: offsetPagination(total, limit, offset, refusals.length),
      }
    },
  })
}

/** Windows of every bucket of a credential, in the order of the OpenAPI document. */
function requestLimits(rows: StandingRow[], running: RunningWindows, rates: RateSettings, { kind }: Principal) {
  const used = new Map(rows.map((row) => [row.bucket, row]))
  const names = (Object.keys(buckets) as BucketName[]).filter((name) => buckets[name].per === 'credential')
  return names.flatMap((name) => {
    const limits = limitsOf(name, rates, kind)
    return (['hour', 'minute'] as const)
      .filter((window) => (buckets[name] as Bucket)[window] !== undefined)
      .map((window) => ({
        name,
        window,
        ...standing(limits[window], used.get(name)?.[`${window}_used`] ?? 0),
        resets_at: running[`${window}_ends_at`],
      }))
  })
}

function standing(limit: number, used: number): { limit: number; used: number; remaining: number } {
  return { limit, used, remaining: Math.max(0, limit - used) }
}

function refusalsOf(rows: StandingRow[]) {
  return rows
    .filter((row) => row.refused_at !== null && row.this_hour_refused + row.previous_hour_refused > 0)
    .toSorted((a, b) => (a.refused_at! < b.refused_at! ? 1 : -1))
    .map((row) => ({
      name: row.bucket,
      this_hour: row.this_hour_refused,
      previous_hour: row.previous_hour_refused,
      last_at: row.refused_at,
    }))
}
