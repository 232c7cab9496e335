import { billionthsOf, dollarsOf } from '#contract/models/model-prices.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import type { Spender } from '../budgets/budget-rows.ts'
import type { Consumption, CallUse } from '../task.ts'

export interface AgentConsumption {
  agent_id: string
  /** The credential whose tokens are counted (decision D90); null for none. */
  token_subject: string | null
  /** Whether this is activity of the agent (decision D42). */
  active: boolean
  consumed: Consumption
  /** The task that made the calls. */
  spender?: Spender
  calls?: readonly CallUse[]
}

const members = [
  'model_calls',
  'tool_calls',
  'input_tokens',
  'output_tokens',
  'network_in',
  'network_out',
  'cpu_seconds',
  'memory_byte_seconds',
  'cpu_seconds_available',
  'memory_byte_seconds_available',
  'stored_bytes',
] as const satisfies readonly (keyof Consumption)[]

type Row = Record<(typeof members)[number], number> & { agent_id: string }

/**
 * Adds usage to the current minute of agents and the current hour of their credentials, and sets `last_activity`. Rows
 * are written in the order of their keys, so two transactions never deadlock.
 */
export async function addUsage(sql: Sql, all: readonly AgentConsumption[]): Promise<void> {
  const parts = usageParts(sql, all, sql.fragment`true`)
  if (parts) await sql.run(sql.fragment`with ${parts} select`)
}

/**
 * The same as parts of a caller's statement, which write only if `holds` is true; undefined if there is nothing to
 * add. An agent's row that another transaction has locked keeps its `last_activity`: the agent's actions lock the agent
 * before its tasks, and this transaction holds tasks already. A resolution of one second is enough.
 */
export function usageParts({ fragment }: Sql, all: readonly AgentConsumption[], holds: Fragment): Fragment | undefined {
  const rows = sumByAgent(all)
  const active = [...new Set(all.filter((one) => one.active).map(({ agent_id }) => agent_id))]
  if (rows.length === 0 && active.length === 0) return undefined
  return fragment`
    used as (
      insert into agent_usage as u (agent_id, minute, model_calls, tool_calls, input_tokens, output_tokens, network_in, network_out,
        cpu_seconds, memory_byte_seconds, cpu_seconds_available, memory_byte_seconds_available, stored_bytes)
      select agent_id, date_trunc('minute', now(), 'UTC'), model_calls, tool_calls, input_tokens, output_tokens, network_in, network_out,
        cpu_seconds, memory_byte_seconds, cpu_seconds_available, memory_byte_seconds_available, stored_bytes
      from jsonb_to_recordset(${jsonb(rows)}::jsonb) as c(agent_id text, model_calls bigint, tool_calls bigint, input_tokens bigint,
        output_tokens bigint, network_in bigint, network_out bigint, cpu_seconds float8, memory_byte_seconds float8,
        cpu_seconds_available float8, memory_byte_seconds_available float8, stored_bytes bigint)
      where ${holds}
      order by agent_id
      on conflict (agent_id, minute) do update set model_calls = u.model_calls + excluded.model_calls,
        tool_calls = u.tool_calls + excluded.tool_calls, input_tokens = u.input_tokens + excluded.input_tokens,
        output_tokens = u.output_tokens + excluded.output_tokens, network_in = u.network_in + excluded.network_in,
        network_out = u.network_out + excluded.network_out, cpu_seconds = u.cpu_seconds + excluded.cpu_seconds,
        memory_byte_seconds = u.memory_byte_seconds + excluded.memory_byte_seconds,
        cpu_seconds_available = u.cpu_seconds_available + excluded.cpu_seconds_available,
        memory_byte_seconds_available = u.memory_byte_seconds_available + excluded.memory_byte_seconds_available,
        stored_bytes = u.stored_bytes + excluded.stored_bytes
    ), billed as (
      insert into usage_hour as u (org_id, project_id, agent_id, credential_id, model, tool, hour, calls, input_tokens, output_tokens,
        cached_tokens, cost_usd, unpriced_calls, sandbox_seconds)
      select org_id, project_id, agent_id, credential_id, model, tool, date_trunc('hour', now(), 'UTC'), calls, input_tokens,
        output_tokens, cached_tokens, cost_usd, unpriced_calls, sandbox_seconds
      from jsonb_to_recordset(${jsonb(sumByBill(all))}::jsonb) as c(org_id text, project_id bigint, agent_id text, credential_id text,
        model text, tool text, calls bigint, input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost_usd numeric,
        unpriced_calls bigint, sandbox_seconds float8)
      where ${holds}
      order by project_id, agent_id, credential_id, model, tool
      on conflict (project_id, hour, agent_id, credential_id, model, tool) do update set calls = u.calls + excluded.calls,
        input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens,
        cached_tokens = u.cached_tokens + excluded.cached_tokens, cost_usd = u.cost_usd + excluded.cost_usd,
        unpriced_calls = u.unpriced_calls + excluded.unpriced_calls,
        sandbox_seconds = u.sandbox_seconds + excluded.sandbox_seconds
    ), spent as (
      insert into token_usage as u (subject, hour, tokens)
      select subject, date_trunc('hour', now(), 'UTC'), tokens
      from jsonb_to_recordset(${jsonb(sumBySubject(all))}::jsonb) as c(subject text, tokens bigint) where ${holds} order by subject
      on conflict (subject, hour) do update set tokens = u.tokens + excluded.tokens
    ), touched as (
      update agent set last_activity = now() where id in (
        select id from agent where id = any(${active}) and ${holds} order by id for no key update skip locked)
    )`
}

function sumByAgent(all: readonly AgentConsumption[]): Row[] {
  const rows = new Map<string, Row>()
  for (const { agent_id, consumed } of all) {
    const row = rows.get(agent_id) ?? ({ agent_id, ...Object.fromEntries(members.map((member) => [member, 0])) } as Row)
    for (const member of members) row[member] += consumed[member] ?? 0
    rows.set(agent_id, row)
  }
  return [...rows.values()].filter((row) => members.some((member) => row[member] > 0))
}

interface Bill extends Omit<CallUse, 'cost_usd' | 'sandbox_seconds'> {
  cost_usd: number
  sandbox_seconds: number
  calls: number
  unpriced_calls: number
}

/** Sums calls by spender and by model or tool. */
function sumByBill(all: readonly AgentConsumption[]): Bill[] {
  const rows = new Map<string, Bill>()
  for (const { spender, calls = [] } of all) {
    for (const { model = '', tool = '', ...call } of spender && spender.org_id !== null ? calls : []) {
      const { org_id, project_id, agent_id, credential_id } = spender!
      const of = { org_id, project_id, agent_id, credential_id: credential_id ?? '', model, tool }
      const key = JSON.stringify(of)
      const sum = rows.get(key)
      rows.set(key, {
        ...of,
        calls: (sum?.calls ?? 0) + 1,
        input_tokens: (sum?.input_tokens ?? 0) + call.input_tokens,
        output_tokens: (sum?.output_tokens ?? 0) + call.output_tokens,
        cached_tokens: (sum?.cached_tokens ?? 0) + call.cached_tokens,
        cost_usd: dollarsOf(billionthsOf(sum?.cost_usd ?? 0) + billionthsOf(call.cost_usd ?? 0)),
        sandbox_seconds: (sum?.sandbox_seconds ?? 0) + (call.sandbox_seconds ?? 0),
        unpriced_calls: (sum?.unpriced_calls ?? 0) + (call.cost_usd === null ? 1 : 0),
      })
    }
  }
  return [...rows.values()]
}

function sumBySubject(all: readonly AgentConsumption[]): { subject: string; tokens: number }[] {
  const tokens = new Map<string, number>()
  for (const { token_subject, consumed } of all) {
    const used = (consumed.input_tokens ?? 0) + (consumed.output_tokens ?? 0)
    if (token_subject !== null && used > 0) tokens.set(token_subject, (tokens.get(token_subject) ?? 0) + used)
  }
  return [...tokens].map(([subject, sum]) => ({ subject, tokens: sum }))
}
