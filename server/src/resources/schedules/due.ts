import type { ScheduleCatchUp, ScheduleError, ScheduleOverlap } from '#contract/tasks/schedule-lifecycle.ts'
import { nextRunsMax } from '#contract/tasks/schedules.ts'
import { DueTimes } from './cron.ts'

/** A due time that passed longer ago than this was missed: the service was down, or could not reach its database. */
export const missed_ms = 60_000

/** The members of a schedule that decide. */
export interface Timing {
  cron: string
  time_zone: string
  overlap: ScheduleOverlap
  catch_up: ScheduleCatchUp
  /** Null while it is paused. */
  next_run_at: string | null
}

/** What is around a schedule at the moment in which it is due. */
export interface Situation {
  agent_status: string
  agent_accepts_tasks: boolean
  has_open_task: boolean
  queue_is_full: boolean
}

/** What a due schedule does. */
export interface Decision {
  /** The due time that it acts for: the last one that has passed, however many have. */
  due: string
  /** The next due time, later than the moment of the decision; null where there is none any more: then it is paused. */
  next: string | null
  /** Why it creates no task; null where it creates one. */
  fault: { code: ScheduleError; message: string } | null
}

/**
 * What a schedule does at a time; undefined where it is not due. A pure function of clock and rows, so tests see what
 * the service does. Of several missed due times only the last one counts, so that a service that restarts does not
 * flood its agents. Throws `CronError` where the pattern is no longer valid.
 */
export function decide(timing: Timing, situation: Situation, now: Date): Decision | undefined {
  const { cron, time_zone, next_run_at } = timing
  if (next_run_at === null || Date.parse(next_run_at) > now.getTime()) return undefined
  const times = new DueTimes(cron, time_zone)
  // Governments change the rules of time zones: a due time that was announced stays valid.
  const due = Math.max(Date.parse(next_run_at), times.until(now)?.getTime() ?? 0)
  return {
    due: new Date(due).toISOString(),
    next: times.after(now)?.toISOString() ?? null,
    fault: errorOf(timing, situation, now.getTime() - due),
  }
}

function errorOf({ overlap, catch_up }: Timing, situation: Situation, late_ms: number): Decision['fault'] {
  if (catch_up === 'none' && late_ms > missed_ms)
    return { code: 'missed', message: 'The service was not running when it was due.' }
  if (!situation.agent_accepts_tasks)
    return { code: 'agent_not_running', message: `The agent is ${situation.agent_status} and accepts no tasks.` }
  if (overlap === 'skip' && situation.has_open_task)
    return { code: 'task_open', message: 'An earlier task of the schedule is still open.' }
  if (situation.queue_is_full) return { code: 'queue_full', message: 'The agent has too many queued tasks.' }
  return null
}

/** The next due times after a moment, beginning with one that is known; as many as are shown. Throws `CronError`. */
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

/** When a schedule that becomes active at a moment is due for the first time; null where that is never. */
export function firstDue({ cron, time_zone }: Pick<Timing, 'cron' | 'time_zone'>, now: Date): string | null {
  return new DueTimes(cron, time_zone).after(now)?.toISOString() ?? null
}
