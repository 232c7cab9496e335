import type { Sql } from '../../platform/postgres/database.ts'

/** Deletes ended, locked tasks with their journals and all rows that belong to them. */
export async function deleteEndedTasks(tx: Sql, task_ids: readonly string[]): Promise<void> {
  const ids = [...task_ids]
  await tx`delete from task_event where task_id = any(${ids})`
  await tx`delete from task_step where task_id = any(${ids})`
  await tx`delete from approval where task_id = any(${ids})`
  await tx`delete from task_message where task_id = any(${ids})`
  await deleteDoorRows(tx, ids)
  await tx`delete from task where id = any(${ids})`
}

/**
 * Deletes the rows that protocols and other features store for tasks: tool calls, offers to remote workers,
 * delegations, budgets, responses, push notifications, and clients' names. Called when the tasks are deleted.
 */
export async function deleteDoorRows(tx: Sql, task_ids: readonly string[]): Promise<void> {
  const ids = [...task_ids]
  await tx`delete from tool_call where task_id = any(${ids})`
  await tx`delete from work where task_id = any(${ids})`
  await tx`delete from delegation where parent_task_id = any(${ids})`
  await tx`delete from budget where scope = 'task' and subject = any(${ids})`
  await tx`delete from door_response where task_id = any(${ids})`
  await tx`delete from webhook where push_task_id = any(${ids})`
  await tx`delete from door_key where task_id = any(${ids})`
}
