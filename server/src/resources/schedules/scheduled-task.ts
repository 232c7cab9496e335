import type { Context } from '../../context.ts'
import { ownMetadata, type NewTask } from '../../engine/commands/new-task.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { noteTask, type ScheduleRow } from './schedules.queries.ts'

/**
 * Creates a task of a locked schedule in the caller's transaction, on behalf of the schedule's owner or of the user
 * who triggered it. Returns its id. The agent must be locked and accept tasks.
 */
export async function createScheduledTask(
  { engine }: Pick<Context, 'engine'>,
  tx: Sql,
  schedule: ScheduleRow,
  agent: NewTask['agent'],
  by: { user_id: string; request_id: string | null } = { user_id: schedule.created_by, request_id: null },
): Promise<string> {
  const { id: schedule_id, thread_id, input, priority, timeout_seconds, budget, metadata } = schedule
  const id = newId('task')
  await engine.enqueue(tx, {
    id,
    agent,
    schedule_id,
    thread_id,
    input,
    priority,
    timeout_seconds,
    budget,
    metadata: ownMetadata(metadata),
    created_by: by.user_id,
    request_id: by.request_id,
  })
  await noteTask(tx, schedule_id, id)
  return id
}
