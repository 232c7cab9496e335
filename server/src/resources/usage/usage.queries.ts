import { usageGroups, usageSeriesMax, type UsageGroup } from '#contract/resources/usage.ts'
import { raw, type Sql } from '../../platform/postgres/database.ts'

/** Sums of one group, or of all groups. */
export interface UsageSums {
  calls: number
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  /** Cost of the calls whose price is known. */
  cost_usd: number
  sandbox_seconds: number
  unpriced_calls: number
}

export interface UsageRow extends UsageSums {
  agent_id: string | null
  model: string | null
  tool: string | null
  api_key_id: string | null
}

export interface UsageFilter {
  project_id: number
  start_time: string
  end_time: string
  groups: readonly UsageGroup[]
  limit: number
  offset: number
}

const sums = ({ fragment }: Sql) => fragment`
  coalesce(sum(calls), 0)::bigint as calls, coalesce(sum(input_tokens), 0)::bigint as input_tokens,
  coalesce(sum(output_tokens), 0)::bigint as output_tokens, coalesce(sum(cached_tokens), 0)::bigint as cached_tokens,
  coalesce(sum(cost_usd), 0) as cost_usd, coalesce(sum(sandbox_seconds), 0) as sandbox_seconds, coalesce(sum(unpriced_calls), 0)::bigint as unpriced_calls`

/** A page of groups, most expensive first, their total number, and the sum of all. Costs are added as decimals. */
export async function sumUsage(
  sql: Sql,
  { project_id, start_time, end_time, groups, limit, offset }: UsageFilter,
): Promise<{ usage: UsageRow[]; count: number; total: UsageSums }> {
  const { fragment } = sql
  const where = fragment`
    project_id = ${project_id} and hour >= date_trunc('hour', ${start_time}::timestamptz, 'UTC') and hour < ${end_time}::timestamptz`
  const [agent, model, tool, key] = usageGroups.map((group) => groups.includes(group))
  const grouped = fragment`
    select case when ${agent} then agent_id end as agent_id, case when ${model} then nullif(model, '') end as model,
      case when ${tool} then nullif(tool, '') end as tool, case when ${key} then nullif(credential_id, '') end as api_key_id,
      ${sums(sql)}
    from usage_hour where ${where} group by 1, 2, 3, 4`
  const usage = await sql.run<UsageRow>(fragment`
    ${grouped} order by cost_usd desc, calls desc, 1, 2, 3, 4 limit ${limit} offset ${offset}`)
  const [counted] = await sql.run<{ count: number }>(fragment`select count(*) as count from (${grouped}) g`)
  const [total] = await sql.run<UsageSums>(fragment`select ${sums(sql)} from usage_hour where ${where}`)
  return { usage, count: counted!.count, total: total! }
}

export interface UsagePoint {
  /** Null for the groups that are not among the most expensive. */
  group: string | null
  name: string | null
  /** Start of the bucket in Unix seconds. */
  at: number
  cost_usd: number
  tokens: number
}

const columns = { agent: 'agent_id', model: 'model', tool: 'tool', api_key: 'credential_id' } as const

/**
 * Usage by bucket of the most expensive groups of one kind, and of all others together. Buckets without usage are
 * missing. `start_time` is the start of a bucket.
 */
export async function listUsagePoints(
  sql: Sql,
  filter: { project_id: number; group: UsageGroup; start_time: string; end_time: string; bucket_seconds: number },
): Promise<UsagePoint[]> {
  const { project_id, group, start_time, end_time, bucket_seconds } = filter
  return sql.run<UsagePoint>(sql.fragment`
    with used as materialized (
      select ${raw(columns[group])} as group_key, bucket_floor(${bucket_seconds}::int, hour) as at, sum(cost_usd) as cost, sum(input_tokens + output_tokens) as tokens
      from usage_hour where project_id = ${project_id} and hour >= ${start_time}::timestamptz and hour < ${end_time}::timestamptz
      group by 1, 2
    ), ranked as (
      select group_key, row_number() over (order by sum(cost) desc, sum(tokens) desc, group_key) as place, count(*) over () as groups
      from used group by group_key
    )
    select case when place < ${usageSeriesMax} or groups = ${usageSeriesMax} then group_key end as group, max(agent.name) as name,
      extract(epoch from at)::float8 as at, sum(cost)::float8 as cost_usd, sum(tokens)::bigint as tokens
    from used join ranked using (group_key)
      left join agent on ${group === 'agent'} and agent.id = group_key and (place < ${usageSeriesMax} or groups = ${usageSeriesMax})
    group by 1, at order by at`)
}
