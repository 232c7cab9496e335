import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import type { NewToolCall } from '../task.ts'

/** Where a call of a caller's tool is in the journal, and who gave its result. */
export interface ToolCallRow {
  id: string
  task_id: string
  step_index: number
  resolved_by: string | null
  resolved_at: string | null
}

export async function insertToolCalls(tx: Sql, calls: readonly (NewToolCall & { task_id: string })[]): Promise<void> {
  await tx`
    insert into tool_call (id, task_id, step_index)
    select id, task_id, step_index from jsonb_to_recordset(${jsonb(calls)}::jsonb) as c(id text, task_id text, step_index int)`
}

/** Calls by their identifiers; those that there are not are left out. */
export async function listToolCalls(sql: Sql, ids: readonly string[]): Promise<ToolCallRow[]> {
  return sql<ToolCallRow>`
    select id, task_id, step_index, resolved_by, resolved_at from tool_call where id = any(${[...ids]})`
}

/** Notes who gave the result of a call. Its task is locked, and its step was open under that lock. */
export async function noteResolved(tx: Sql, id: string, user_id: string): Promise<void> {
  await tx`update tool_call set resolved_by = ${user_id}, resolved_at = now() where id = ${id}`
}
