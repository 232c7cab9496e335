import type { Sql } from '../../platform/postgres/database.ts'

/** Removes tasks that have ended and that are locked, with their journals and what is kept beside them. */
export async function deleteEndedTasks(tx: Sql, task_ids: readonly string[]): Promise<void> {
  const ids = [...task_ids]
  await tx`delete from task_event where task_id = any(${ids})`
  await tx`delete from task_step where task_id = any(${ids})`
  await tx`delete from approval where task_id = any(${ids})`
  await tx`delete from task_message where task_id = any(${ids})`
  await deleteDoorRows(tx, ids)
  await tx`delete from task where id = any(${ids})`
}

/** Removes what is kept beside tasks: what they delegated, calls of their callers, responses, requests the client's names of them, and push notifications. Part of the tasks' removal. */
export async function deleteDoorRows(tx: Sql, task_ids: readonly string[]): Promise<void> {
  const ids = [...task_ids]
  await tx`delete from tool_call where task_id = any(${ids})`
  await tx`delete from work where task_id = any(${ids})`
  await tx`delete from delegation where parent_task_id = any(${ids})`
  await tx`delete from budget where scope = 'task' and subject = any(${ids})`
  await tx`delete from door_response where task_id = any(${ids})`
  await tx`delete from webhook where push_task_id = any(${ids})`
  await tx`delete from door_key where task_id = any(${ids})`
  await tx`delete from door_request where task_id = any(${ids})`
}
