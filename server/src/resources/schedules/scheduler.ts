import { bounds } from '#contract/core/limits.ts'
import { Problem } from '#contract/core/problems.ts'
import { agentAcceptsTasks } from '#contract/tasks/task-lifecycle.ts'
import type { Context } from '../../context.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import { writeAgentLog } from '../../events/agent-log.ts'
import { startPeriodic } from '../../platform/periodic.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isQueueFull } from '../tasks/tasks.queries.ts'
import { CronError } from './cron.ts'
import { decide, type Decision, type Situation } from './due.ts'
import { createScheduledTask } from './scheduled-task.ts'
import {
  advanceSchedule,
  hasOpenTask,
  listDueSchedules,
  lockAgentOf,
  lockDueSchedule,
  noteError,
  type ScheduleRow,
} from './schedules.queries.ts'

/** Poll interval for due schedules: the maximum delay of a task. */
const pollInterval_ms = 1000
/** Maximum number of schedules per poll. */
const batch = 200
/** Number of due schedules that one process handles concurrently. */
const concurrency = 4

type Parts = Pick<Context, 'sql' | 'log' | 'engine'>

/** Creates the scheduled tasks of agents. */
export interface Scheduler {
  /** Stops, and resolves when started work is done. */
  stop(): Promise<void>
}

/**
 * Every process polls for due schedules. The process that locks one sets its next due time and creates its task in
 * the same transaction, so each due time creates exactly one task with any number of processes and crashes.
 */
export function startScheduler(parts: Parts): Scheduler {
  let isStopped = false
  const look = async (): Promise<void> => {
    while (!isStopped && parts.engine.isReady() && (await runDue(parts)) === batch) continue
  }
  const job = startPeriodic(look, {
    every_ms: pollInterval_ms,
    onError: (error) => parts.log.warn({ err: error }, 'due schedules could not be read; retrying'),
  })
  return {
    async stop() {
      isStopped = true
      await job.stop()
    },
  }
}

/**
 * Handles the schedules that are due now; returns their number. If one fails, the error is logged and the schedule
 * stays due for the next poll; the others are not affected.
 */
export async function runDue(parts: Parts): Promise<number> {
  const due = await listDueSchedules(parts.sql, batch)
  const open = due.values()
  const actOnOpen = async (): Promise<void> => {
    for (const found of open) {
      try {
        await parts.sql.begin((tx) => act(parts, tx, found))
      } catch (error) {
        parts.log.warn({ err: error, schedule_id: found.id }, 'a due schedule failed; retrying')
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, actOnOpen))
  return due.length
}

async function act(parts: Parts, tx: Sql, found: { id: string; agent_id: string }): Promise<void> {
  const agent = await lockAgentOf(tx, found.agent_id)
  const schedule = agent && (await lockDueSchedule(tx, found.id))
  if (!schedule) return
  const decision = decideSafely(schedule, await situationOf(tx, schedule, agent), new Date(schedule.now))
  if (!decision) return
  await advanceSchedule(tx, schedule.id, decision.next)
  const fault = decision.fault ?? (await create(parts, tx, schedule, agent))
  if (fault) await skip(tx, schedule, decision, fault)
}

async function situationOf(tx: Sql, { id }: ScheduleRow, agent: NewTask['agent']): Promise<Situation> {
  return {
    agent_status: agent.status,
    agent_accepts_tasks: agentAcceptsTasks(agent),
    has_open_task: await hasOpenTask(tx, id),
    queue_is_full: await isQueueFull(tx, agent.id, bounds.queued_tasks),
  }
}

/** Pauses a schedule whose expression or time zone is no longer valid, instead of failing forever. */
function decideSafely(schedule: ScheduleRow & { now: string }, situation: Situation, now: Date): Decision | undefined {
  try {
    return decide(schedule, situation, now)
  } catch (error) {
    if (!(error instanceof CronError)) throw error
    const message = `The schedule was paused: ${error.field} ${error.message}.`
    return { due: schedule.next_run_at ?? schedule.now, next: null, fault: { code: 'refused', message } }
  }
}

/** Creates the task in a savepoint. If the engine refuses it, returns the reason. */
async function create(
  parts: Parts,
  tx: Sql,
  schedule: ScheduleRow,
  agent: NewTask['agent'],
): Promise<Decision['fault']> {
  try {
    await tx.begin((inner) => createScheduledTask(parts, inner, schedule, agent))
    return null
  } catch (error) {
    if (!(error instanceof Problem) || error.status >= 500) throw error
    return { code: 'refused', message: error.message }
  }
}

/** Records in the agent's log and in the schedule why a due time created no task. */
async function skip(
  tx: Sql,
  schedule: ScheduleRow & { now: string },
  { due }: Decision,
  { code, message }: NonNullable<Decision['fault']>,
): Promise<void> {
  const { id, agent_id, name, now } = schedule
  await noteError(tx, id, { code, message, at: now })
  await writeAgentLog(tx, [
    {
      agent_id,
      level: 'warn',
      message: `Schedule ${name} created no task: ${message}`,
      context: { schedule_id: id, code, due },
    },
  ])
}
