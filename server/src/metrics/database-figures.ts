import { lease_seconds } from '../engine/maintenance/leases.ts'
import type { Sql } from '../platform/postgres/database.ts'

/** Numbers of tasks and workers of all processes. */
export interface TaskFigures {
  queued: number
  running: number
  waiting: number
  /** 0 if no task waits for a slot. */
  oldest_queued_age_seconds: number
  workers_alive: number
  client_calls_pending: number
  client_calls_claimed: number
  /** 0 if no call waits for a claim. */
  client_calls_oldest_age_seconds: number
  work_pending: number
  work_claimed: number
  /** 0 if no task waits for a worker on its owner's side. */
  work_oldest_age_seconds: number
  schema_version: number
}

/**
 * Counts tasks that have not ended. The oldest queued one is the oldest that has a job or is in the backlog of its
 * project; others wait for their start time, their agent or a concurrency limit.
 */
export async function readTaskFigures(sql: Sql): Promise<TaskFigures> {
  const [row] = await sql<TaskFigures>`
    select t.*, c.*, w.*,
      (select count(*) from worker where slots > 0 and seen_at > now() - make_interval(secs => ${lease_seconds})) as workers_alive,
      (select coalesce(max(version), 0) from schema_migration) as schema_version
    from (
      select count(*) filter (where status = 'queued') as queued,
        count(*) filter (where status = 'running') as running,
        count(*) filter (where status = 'waiting') as waiting,
        coalesce(extract(epoch from now() - min(greatest(created_at, run_after))
          filter (where status = 'queued' and (job_id is not null or backlog) and coalesce(run_after, now()) <= now())), 0)
          as oldest_queued_age_seconds
      from task where finished_at is null
    ) t, (
      select count(*) filter (where status = 'pending') as client_calls_pending,
        count(*) filter (where status = 'claimed') as client_calls_claimed,
        coalesce(extract(epoch from now() - min(created_at) filter (where status = 'pending')), 0)
          as client_calls_oldest_age_seconds
      from tool_call where status in ('pending', 'claimed')
    ) c, (
      select count(*) filter (where status = 'pending') as work_pending,
        count(*) filter (where status = 'claimed') as work_claimed,
        coalesce(extract(epoch from now() - min(offered_at) filter (where status = 'pending')), 0) as work_oldest_age_seconds
      from work where status in ('pending', 'claimed')
    ) w`
  return row!
}

/** Numbers of events and deliveries of all processes. */
export interface WebhookFigures {
  events_unmatched: number
  deliveries_pending: number
  deliveries_due: number
  /** 0 if no delivery is due. */
  oldest_due_age_seconds: number
}

export async function readWebhookFigures(sql: Sql): Promise<WebhookFigures> {
  const [row] = await sql<WebhookFigures>`
    select d.*, (select count(*) from event where matched_at is null) as events_unmatched
    from (
      select count(*) as deliveries_pending,
        count(*) filter (where next_attempt_at <= now()) as deliveries_due,
        greatest(coalesce(extract(epoch from now() - min(next_attempt_at)), 0), 0) as oldest_due_age_seconds
      from delivery where status = 'pending'
    ) d`
  return row!
}
