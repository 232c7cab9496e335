import { notFound } from '#contract/core/problems.ts'
import type { ToolCallState, ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { Caller } from '../../engine/task.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** The row of a call of a client tool. */
interface ToolCallRow {
  id: string
  task_id: string
  step_index: number
  agent_id: string
  name: string
  arguments: unknown
  attempt: number
  status: ToolCallState
  safety: ToolSafety
  content: string | null
  error: { code: string; message: string } | null
  claimed_by: string | null
  lease_until: string | null
  expires_at: string | null
  resolved_by: string | null
  resolved_at: string | null
  created_at: string
}

/** Key of a tool call within its project. */
export interface ToolCallKey {
  id: string
  project_id: number
}

/** SQL for calls with data of their steps, without calls of deleted agents and tasks. */
const source = (sql: Sql) => sql.fragment`
  tool_call c join task_step s on s.task_id = c.task_id and s.index = c.step_index
  where not exists (select from removed_agent r where r.agent_id = c.agent_id)`

const columns = (sql: Sql) => sql.fragment`
  c.id, c.task_id, c.step_index, c.agent_id, c.name, s.input -> 'arguments' as arguments, c.attempt, c.status, c.safety,
  case when c.status = 'completed' then s.output ->> 'content' end as content,
  case when c.status <> 'completed' then s.error end as error, c.claimed_by, c.lease_until, c.expires_at, c.resolved_by, c.resolved_at,
  c.created_at`

/** A call of a project; throws 404 if it does not exist or its agent is deleted. */
export async function requireToolCall(sql: Sql, { id, project_id }: ToolCallKey): Promise<ToolCallRow> {
  const [row] = isId('call', id)
    ? await sql.run<ToolCallRow>(sql.fragment`
        select ${columns(sql)} from ${source(sql)} and c.id = ${id} and c.project_id = ${project_id}`)
    : []
  if (!row) throw notFound('tool_call_not_found', 'tool_call', id.slice(0, 100))
  return row
}

/** Validated filters of a list of calls. */
export interface ToolCallFilter {
  project_id: number
  status?: ToolCallState | undefined
  name?: string | undefined
  task_id?: string | undefined
  limit: number
  offset: number
}

/** A page of a project's calls, newest first by id, and their total number. */
export async function listToolCallPage(
  sql: Sql,
  { project_id, status, name, task_id, limit, offset }: ToolCallFilter,
): Promise<{ calls: ToolCallRow[]; total: number }> {
  const { fragment } = sql
  const conditions = [fragment`c.project_id = ${project_id}`]
  if (status) conditions.push(fragment`c.status = ${status}`)
  if (name !== undefined) conditions.push(fragment`c.name = ${name}`)
  if (task_id !== undefined) conditions.push(fragment`c.task_id = ${task_id}`)
  const from = conditions.reduce((all, one) => fragment`${all} and ${one}`, source(sql))
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from ${from}`)
  const calls = await sql.run<ToolCallRow>(
    fragment`select ${columns(sql)} from ${from} order by c.id desc limit ${limit} offset ${offset}`,
  )
  return { calls, total: count?.total ?? 0 }
}

/** The result schema of a call: that of the task's tool, or else of the project's. */
export async function findResultSchema(
  sql: Sql,
  { project_id, task_id, name }: { project_id: number; task_id: string; name: string },
): Promise<Record<string, unknown> | undefined> {
  const [row] = await sql<{ of_project: Record<string, unknown> | null; caller: Caller | null }>`
    select t.definition -> 'result_schema' as of_project, k.caller
    from task k left join tool t on t.project_id = ${project_id} and t.name = ${name} and t.kind = 'client'
    where k.id = ${task_id}`
  // The project may have a tool with this name that the agent does not use.
  const own = row?.caller?.tools?.find((tool) => tool.name === name)
  return own ? own.result_schema : (row?.of_project ?? undefined)
}

/** A tool call in a response. */
export function toolCallView(row: ToolCallRow) {
  const { step_index, content, error, ...view } = row
  return {
    ...view,
    idempotency_key: idempotencyKey(row),
    output: content,
    error: error && { code: error.code, message: error.message },
  }
}

/** The idempotency key of a call, the same in every attempt and in the format of other kinds of tools. */
export function idempotencyKey({ task_id, step_index }: Pick<ToolCallRow, 'task_id' | 'step_index'>): string {
  return `${task_id}:${step_index}`
}
