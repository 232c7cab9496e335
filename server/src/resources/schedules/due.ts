import type { ScheduleCatchUp, ScheduleError, ScheduleOverlap } from '#contract/tasks/schedule-lifecycle.ts'
import { nextRunsMax } from '#contract/tasks/schedules.ts'
import { DueTimes } from './cron.ts'

/** A due time that is older counts as missed: the service was down or could not reach its database. */
export const missed_ms = 60_000

/** The members of a schedule that affect the decision. */
export interface Timing {
  cron: string
  time_zone: string
  overlap: ScheduleOverlap
  catch_up: ScheduleCatchUp
  /** Null while it is paused. */
  next_run_at: string | null
}

/** The state around a due schedule. */
export interface Situation {
  agent_status: string
  agent_accepts_tasks: boolean
  has_open_task: boolean
  queue_is_full: boolean
}

/** The decision on a due schedule. */
export interface Decision {
  /** The due time of the decision: the last one that has passed. */
  due: string
  /** The next due time after now; null if there is none, then the schedule is paused. */
  next: string | null
  /** Why no task is created; null if one is created. */
  fault: { code: ScheduleError; message: string } | null
}

/**
 * Decides what a schedule does now; undefined if it is not due. Pure. Of several passed due times only the last one
 * counts, so that a restarted service does not flood its agents. Throws `CronError` if the expression is no longer
 * valid.
 */
export function decide(timing: Timing, situation: Situation, now: Date): Decision | undefined {
  const { cron, time_zone, next_run_at } = timing
  if (next_run_at === null || Date.parse(next_run_at) > now.getTime()) return undefined
  const times = new DueTimes(cron, time_zone)
  // If the rules of the time zone have changed, the stored due time stays valid.
  const due = Math.max(Date.parse(next_run_at), times.until(now)?.getTime() ?? 0)
  return {
    due: new Date(due).toISOString(),
    next: times.after(now)?.toISOString() ?? null,
    fault: errorOf(timing, situation, now.getTime() - due),
  }
}

function errorOf({ overlap, catch_up }: Timing, situation: Situation, late_ms: number): Decision['fault'] {
  if (catch_up === 'none' && late_ms > missed_ms)
    return { code: 'missed', message: 'The service was not running at the due time.' }
  if (!situation.agent_accepts_tasks)
    return { code: 'agent_not_running', message: `The agent is ${situation.agent_status} and accepts no tasks.` }
  if (overlap === 'skip' && situation.has_open_task)
    return { code: 'task_open', message: 'An earlier task of the schedule is still open.' }
  if (situation.queue_is_full) return { code: 'queue_full', message: 'The agent has too many queued tasks.' }
  return null
}

/** The next due times for a response, starting with the stored one. Throws `CronError`. */
export function nextRuns(
  { cron, time_zone }: Pick<Timing, 'cron' | 'time_zone'>,
  first: string | null,
  now: Date,
): string[] {
  const times = new DueTimes(cron, time_zone)
  const runs = first === null ? [] : [first]
  let last = first === null ? now : new Date(first)
  while (runs.length < nextRunsMax) {
    const next = times.after(last)
    if (!next) break
    runs.push(next.toISOString())
    last = next
  }
  return runs
}

/** The first due time of a schedule that becomes active now; null if there is none. */
export function firstDue({ cron, time_zone }: Pick<Timing, 'cron' | 'time_zone'>, now: Date): string | null {
  return new DueTimes(cron, time_zone).after(now)?.toISOString() ?? null
}
