import type { Sql } from '../../platform/postgres/database.ts'

/** A task of a thread that waits for its caller. */
export interface WaitingTask {
  id: string
}

/** The task of a thread that waits for its caller for one of these reasons. Later tasks of the thread wait for it. */
export async function findWaiting(
  tx: Sql,
  thread_id: string,
  reasons: readonly string[],
): Promise<WaitingTask | undefined> {
  const [row] = await tx<WaitingTask>`
    select id from task where thread_id = ${thread_id} and finished_at is null and status = 'waiting'
      and wait->>'reason' = any(${[...reasons]}) and (wait->>'reason' <> 'tool' or exists (
        select 1 from task_step s where s.task_id = task.id and s.type = 'wait' and s.status = 'started' and not s.input ? 'is_projects'))
    order by thread_position limit 1`
  return row
}

/** The last message of the last run of a thread. */
export async function findLastRun(tx: Sql, thread_id: string): Promise<{ last_message_id: string | null } | undefined> {
  const [row] = await tx<{ last_message_id: string | null }>`
    select r.request->>'last_message_id' as last_message_id from task t join door_response r on r.task_id = t.id
    where t.thread_id = ${thread_id} order by t.thread_position desc, r.ordinal desc limit 1`
  return row
}

/** An open approval, with the schema of its arguments. */
export interface OpenApproval {
  id: string
  kind: 'tool_call' | 'recovery'
  tool: string
  arguments: unknown
  parameters: Record<string, unknown> | null
  step_id: string
  expires_at: string | null
}

export async function listOpenApprovals(sql: Sql, task_id: string): Promise<OpenApproval[]> {
  return sql<OpenApproval>`
    select id, kind, tool, arguments, parameters, step_id, expires_at from approval
    where task_id = ${task_id} and status = 'pending' order by step_index, id`
}

/** Approvals by id in any state: those that an ended run asked for. */
export async function listAskedApprovals(sql: Sql, ids: readonly string[]): Promise<OpenApproval[]> {
  return sql<OpenApproval>`
    select id, kind, tool, arguments, parameters, step_id, expires_at from approval where id = any(${[...ids]}) order by step_index, id`
}

/** Steps of a task that wait for the answer to a question. */
export async function listOpenQuestions(sql: Sql, task_id: string): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select id from task_step where task_id = ${task_id} and type = 'wait' and name = 'request_input' and status = 'started'
      and not input ? 'is_callers' order by index`
  return rows.map(({ id }) => id)
}
