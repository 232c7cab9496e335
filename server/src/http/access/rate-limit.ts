import {
  buckets,
  rateWindows_seconds,
  sessionGeneralFactor,
  type Bucket,
  type BucketName,
} from '#contract/core/limits.ts'
import type { CredentialKind } from '#contract/core/operation.ts'
import type { Role } from '#contract/core/scopes.ts'
import { Problem } from '#contract/core/problems.ts'
import { raw, type Sql } from '../../platform/postgres/database.ts'

/** Whether requests are counted, and the scale of the documented limits (decision D91). */
export interface RateSettings {
  enabled: boolean
  /** 1 for the documented limits. */
  scale: number
}

/** Larger than any count: the limit of a window that a bucket does not have. */
const unlimited = Number.MAX_SAFE_INTEGER

/** Scaled limits of a bucket for a credential; a window that the bucket lacks is unlimited. */
export function limitsOf(
  name: BucketName,
  settings: RateSettings,
  kind?: CredentialKind,
): { hour: number; minute: number } {
  const bucket: Bucket = buckets[name]
  const factor = settings.scale * (name === 'general' && kind === 'session' ? sessionGeneralFactor : 1)
  const scaled = (limit: number | undefined): number =>
    limit === undefined ? unlimited : Math.max(1, Math.floor(limit * factor))
  return { hour: scaled(bucket.hour), minute: scaled(bucket.minute) }
}

/** A bucket's row after a request was counted or refused. */
export interface WindowRow {
  admitted: boolean
  hour_used: number
  minute_used: number
  /** Unix seconds at which the current hour and minute end, by the database's clock. */
  hour_reset: number
  minute_reset: number
  /** Unix seconds by the database's clock. */
  now: number
}

/** One window for a caller. */
export interface Window {
  /** Its name in `RateLimit-Policy` and `RateLimit`. */
  name: string
  /** Its duration. */
  seconds: number
  limit: number
  remaining: number
  /** Unix seconds. */
  reset: number
}

/** The governing window: of hour and minute the one with less left (decision D88); if both are spent, the hour. */
export function governingWindow(row: WindowRow, limits: { hour: number; minute: number }): Window {
  const hour = windowOf('hour', limits.hour, row.hour_used, row.hour_reset)
  const minute = windowOf('burst', limits.minute, row.minute_used, row.minute_reset)
  return hour.remaining === 0 || hour.remaining < minute.remaining ? hour : minute
}

function windowOf(name: keyof typeof rateWindows_seconds, limit: number, used: number, reset: number): Window {
  return { name, seconds: rateWindows_seconds[name], limit, remaining: Math.max(0, limit - used), reset }
}

/**
 * The headers of the governing window: those of spec 7.2, and the structured fields of
 * draft-ietf-httpapi-ratelimit-headers. `now` is in Unix seconds, by the same clock as `reset`.
 */
export function windowHeaders({ name, seconds, limit, remaining, reset }: Window, now: number): Record<string, string> {
  const left_seconds = Math.max(0, Math.ceil(reset - now))
  return {
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(reset),
    'ratelimit-policy': `"${name}";q=${limit};w=${seconds}`,
    ratelimit: `"${name}";r=${remaining};t=${left_seconds}`,
  }
}

/** The 429 of decision D89: `retry_after` in `error` and in `details`, and `Retry-After`. */
export function rateLimitProblem(bucket: string, window: Window, now: number): Problem {
  const retry_after = Math.max(1, Math.ceil(window.reset - now))
  return new Problem(
    'rate_limit_exceeded',
    { limit: window.limit, remaining: 0, reset: window.reset, retry_after, bucket },
    {
      message: `Rate limit of ${window.limit} ${bucket === 'tokens' ? 'model tokens' : 'requests'} exceeded. Try again in ${retry_after} s.`,
      members: { retry_after },
      headers: { ...windowHeaders({ ...window, remaining: 0 }, now), 'retry-after': String(retry_after) },
    },
  )
}

/**
 * A 429 for an owner or admin, who may operate the service, names the setting that raises the limit. Any other problem
 * is unchanged.
 */
export function forOperator(problem: Problem, role: Role | undefined): Problem {
  const setting = role === 'owner' || role === 'admin' ? settingOf(problem) : undefined
  if (setting === undefined) return problem
  const { kind, details, members, headers, cause } = problem
  const message = `${problem.message} The setting ${setting} raises the limit.`
  return new Problem(kind, details, { message, members, headers, cause })
}

function settingOf({ kind, details }: Problem): string | undefined {
  const { bucket, unit } = (details ?? {}) as { bucket?: unknown; unit?: unknown }
  if (kind === 'rate_limit_exceeded') return bucket === 'tokens' ? 'CADRE_TOKENS_PER_HOUR' : 'CADRE_RATE_LIMITS_SCALE'
  return kind === 'quota_exceeded' && unit === 'bytes' ? 'CADRE_FILES_MAX_BYTES_PROJECT' : undefined
}

/** The used count of the current window: the row may have been written by a transaction that started a moment later. */
const current = (window: 'hour' | 'minute'): string =>
  `case when w.${window}_start >= excluded.${window}_start then w.${window}_used else 0 end`

/**
 * Counts one request in both windows of a bucket, or refuses it in both (decision D87). It is one update of one row, so
 * it is exact across processes. The same update counts a refusal. Several requests are all counted or none; then each
 * must be counted alone. `source` is a select of `subject` with at most one row.
 */
export function countStatement(
  sql: Sql,
  bucket: string,
  source: ReturnType<Sql['fragment']>,
  limits: { hour: number; minute: number },
  requests = 1,
) {
  const hour = raw(current('hour'))
  const minute = raw(current('minute'))
  const refused = raw('case when w.hour_start >= excluded.hour_start then w.hour_refused else 0 end')
  const admitted = sql.fragment`(${hour} + ${requests}::bigint <= ${limits.hour}::bigint and ${minute} + ${requests}::bigint <= ${limits.minute}::bigint)`
  const fits = requests <= Math.min(limits.hour, limits.minute)
  const first = fits ? requests : 0
  return sql.fragment`
    insert into rate_window as w (subject, bucket, hour_start, hour_used, minute_start, minute_used, admitted)
    select source.subject, ${bucket}, date_trunc('hour', now(), 'UTC'), ${first}::bigint, date_trunc('minute', now(), 'UTC'),
      ${first}::bigint, ${fits}::boolean
    from (${source}) source
    on conflict (subject, bucket) do update set
      admitted = ${admitted},
      hour_refused = ${refused} + case when ${admitted} or ${requests}::bigint > 1 then 0 else 1 end,
      previous_hour_refused = case when w.hour_start >= excluded.hour_start then w.previous_hour_refused
        when w.hour_start = excluded.hour_start - interval '1 hour' then w.hour_refused else 0 end,
      refused_at = case when ${admitted} or ${requests}::bigint > 1 then w.refused_at else now() end,
      hour_used = ${hour} + case when ${admitted} then ${requests}::bigint else 0 end,
      minute_used = ${minute} + case when ${admitted} then ${requests}::bigint else 0 end,
      hour_start = greatest(w.hour_start, excluded.hour_start),
      minute_start = greatest(w.minute_start, excluded.minute_start)
    returning admitted, hour_used, minute_used,
      extract(epoch from hour_start)::float8 + 3600 as hour_reset,
      extract(epoch from minute_start)::float8 + 60 as minute_reset,
      extract(epoch from now())::float8 as now`
}

/**
 * Counts a request without a credential, by its address, or by the client at an address. Returns the headers of the
 * governing window; none while limits are off.
 * @throws `rate_limit_exceeded`
 */
export async function countSubject(
  sql: Sql,
  settings: RateSettings,
  bucket: BucketName,
  subject: string,
): Promise<Record<string, string>> {
  if (!settings.enabled) return {}
  const limits = limitsOf(bucket, settings)
  const [row] = await sql.run<WindowRow>(
    countStatement(sql, bucket, sql.fragment`select ${subject}::text as subject`, limits),
  )
  if (!row) throw new Error('a counted window returns its row')
  const window = governingWindow(row, limits)
  if (!row.admitted) throw rateLimitProblem(bucket, { ...window, remaining: 0 }, row.now)
  return windowHeaders(window, row.now)
}

/** An address as a subject: IPv6 by its /64, which belongs to one customer (decision D86). */
export function addressSubject(ip: string): string {
  if (!ip.includes(':')) return `ip:${ip}`
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip)
  if (mapped) return `ip:${mapped[1]}`
  const [head = '', tail = ''] = ip.split('%', 1)[0]!.split('::')
  const groups = head.split(':').filter(Boolean)
  const zeros = ip.includes('::') ? 8 - groups.length - tail.split(':').filter(Boolean).length : 0
  const all = [...groups, ...Array.from({ length: Math.max(0, zeros) }, () => '0'), ...tail.split(':').filter(Boolean)]
  return `ip:${all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`
}
