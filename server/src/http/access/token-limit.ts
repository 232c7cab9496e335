import { rateWindows_seconds } from '#contract/core/limits.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { AuthenticationSettings } from './authenticate.ts'
import type { Principal } from './principal.ts'
import { rateLimitProblem } from './rate-limit.ts'

/**
 * Checks the credential's model tokens of this hour (decision D90).
 * @throws `rate_limit_exceeded`
 */
export async function requireTokens(
  sql: Sql,
  { rates, tokens_per_hour, uses }: AuthenticationSettings,
  principal: Principal,
): Promise<void> {
  if (!rates.enabled) return
  const [row] = await sql<{ tokens: number; now: number; reset: number }>`
    select tokens, extract(epoch from now())::float8 as now, extract(epoch from hour)::float8 + 3600 as reset
    from token_usage where subject = ${principal.subject} and hour = date_trunc('hour', now(), 'UTC')`
  if (row && row.tokens >= tokens_per_hour) {
    uses.refused(principal, 'tokens')
    throw rateLimitProblem(
      'tokens',
      { name: 'tokens', seconds: rateWindows_seconds.hour, limit: tokens_per_hour, remaining: 0, reset: row.reset },
      row.now,
    )
  }
}
