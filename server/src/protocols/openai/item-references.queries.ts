import type { Sql } from '../../platform/postgres/database.ts'
import type { AskedAgent } from '../../resources/tasks/asked-agents.ts'

type OfAgent = Pick<AskedAgent, 'id' | 'project_id'>

/** A tool call for an item. */
export interface CalledStep {
  id: string
  name: string
  arguments: unknown
  output: string | null
  error: { code: string; message: string } | null
}

/** Only items of responses that may be retrieved. */
const isStored = (sql: Sql) => sql.fragment`
  exists (select from door_response r where r.task_id = s.task_id and r.store and r.deleted_at is null)`

/**
 * Limits the time of a row by its identifier, which begins with its time of creation, so that the index `(agent_id,
 * started_at)` is used. A tool call that is repeated after a crash keeps its identifier, so its row may be later.
 */
const isNear = (sql: Sql, { id }: OfAgent, made_ms: number, later_minutes: number) => sql.fragment`
  s.agent_id = ${id} and s.started_at between to_timestamp(${made_ms}::bigint / 1000.0) - interval '2 minutes'
    and to_timestamp(${made_ms}::bigint / 1000.0) + make_interval(mins => ${later_minutes})`

/** The text of a message of the model or of a question of the agent; undefined if the id is unknown. */
export async function findWritten(sql: Sql, agent: OfAgent, id: string, made_ms: number): Promise<string | undefined> {
  const [row] = await sql.run<{ text: string | null }>(sql.fragment`
    select case s.type when 'wait' then s.input->'arguments'->>'question' else s.output->>'text' end as text from task_step s
    where ${isNear(sql, agent, made_ms, 2)}
      and ((s.type = 'model_call' and s.status = 'completed' and s.input->>'message_id' = ${id})
        or (s.type = 'wait' and s.name = 'request_input' and s.id = ${id.replace(/^msg_/, 'step_')}))
      and ${isStored(sql)} limit 1`)
  return row?.text ?? undefined
}

/** A finished call of one of the agent's own tools. */
export async function findOwnCall(
  sql: Sql,
  agent: OfAgent,
  step_id: string,
  made_ms: number,
): Promise<CalledStep | undefined> {
  const [row] = await sql.run<CalledStep>(sql.fragment`
    select s.id, s.name, s.input->'arguments' as arguments, s.output->>'content' as output, s.error from task_step s
    where ${isNear(sql, agent, made_ms, 60)} and s.id = ${step_id} and s.type = 'tool_call' and ${isStored(sql)} limit 1`)
  return row
}

/** A call of a caller-defined tool. */
export async function findCallersCall(sql: Sql, agent: OfAgent, call_id: string): Promise<CalledStep | undefined> {
  const [row] = await sql.run<CalledStep>(sql.fragment`
    select c.id, s.name, s.input->'arguments' as arguments, s.output->>'content' as output, s.error
    from tool_call c join task_step s on s.task_id = c.task_id and s.index = c.step_index
    where c.id = ${call_id} and s.agent_id = ${agent.id} and ${isStored(sql)}`)
  return row
}

/** An input item of a response of the agent. Its id is created just before that of the response. */
export async function findGiven(
  sql: Sql,
  agent: OfAgent,
  id: string,
  made_ms: number,
): Promise<Record<string, unknown> | undefined> {
  const [row] = await sql.run<{ item: Record<string, unknown> }>(sql.fragment`
    select item from door_response r join task t on t.id = r.task_id and t.agent_id = ${agent.id},
      jsonb_array_elements(r.input) item
    where r.id >= id_floor('resp', to_timestamp(${made_ms}::bigint / 1000.0))
      and r.id < id_floor('resp', to_timestamp(${made_ms}::bigint / 1000.0) + interval '2 minutes')
      and r.project_id = ${agent.project_id} and r.store and r.deleted_at is null and item->>'id' = ${id} limit 1`)
  return row?.item
}
