import type { Sql } from '../../platform/postgres/database.ts'

/** An operation that a key called, with the number of calls. */
export interface CallRow {
  operation: string
  requests: number
  last_at: string
}

/**
 * Operations that a key called in the last 30 days, latest first. Read by primary key; at most one row per operation.
 */
export async function listCalls(sql: Sql, key_id: string): Promise<CallRow[]> {
  return sql<CallRow>`
    select operation, sum(requests)::bigint as requests, max(last_at) as last_at from api_key_call
    where key_id = ${key_id} and day > (now() at time zone 'UTC')::date - 30
    group by operation order by last_at desc, operation`
}

/** Usage of a credential's tasks in the last 30 days, in all projects. */
export async function sumUsage(sql: Sql, credential_id: string) {
  const [row] = await sql<{ calls: number; input_tokens: number; output_tokens: number; cost_usd: number }>`
    select coalesce(sum(calls), 0)::bigint as calls, coalesce(sum(input_tokens), 0)::bigint as input_tokens,
      coalesce(sum(output_tokens), 0)::bigint as output_tokens, coalesce(sum(cost_usd), 0)::float8 as cost_usd
    from usage_hour where credential_id = ${credential_id} and hour > now() - interval '30 days'`
  return row!
}
