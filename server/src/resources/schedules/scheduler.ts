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

/** How often due schedules are looked for: a task begins at most so much later than it is due. */
const pollInterval_ms = 1000
/** Schedules that one look finds. */
const batch = 200
/** Due schedules that one process acts for at the same time: midnight comes for many at once. */
const concurrency = 4

type Parts = Pick<Context, 'sql' | 'log' | 'engine'>

/** Creates the scheduled tasks of agents. */
export interface Scheduler {
  /** Resolves when what has begun is done, and stops. */
  stop(): Promise<void>
}

/**
 * Every process looks for due schedules. The process that locks one sets its next due time and creates its task in the
 * same transaction. So each due time makes one task, however many processes look and whichever of them dies.
 */
export function startScheduler(parts: Parts): Scheduler {
  let isStopped = false
  const look = async (): Promise<void> => {
    while (!isStopped && parts.engine.isReady() && (await runDue(parts)) === batch) continue
  }
  const job = startPeriodic(look, {
    every_ms: pollInterval_ms,
    onError: (error) => parts.log.warn({ err: error }, 'due schedules could not be read; they will be read again'),
  })
  return {
    async stop() {
      isStopped = true
      await job.stop()
    },
  }
}

/**
 * Acts for the schedules that are due now; returns how many it found. One that fails is logged, stays due and is tried
 * again with the next look; it does not keep the others from their tasks.
 */
export async function runDue(parts: Parts): Promise<number> {
  const due = await listDueSchedules(parts.sql, batch)
  const open = due.values()
  const lane = async (): Promise<void> => {
    for (const found of open) {
      try {
        await parts.sql.begin((tx) => act(parts, tx, found))
      } catch (error) {
        parts.log.warn({ err: error, schedule_id: found.id }, 'a schedule is due and failed; it will be tried again')
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, lane))
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

/** A pattern that is no longer understood, because its time zone is gone, pauses its schedule instead of failing for ever. */
function decideSafely(schedule: ScheduleRow & { now: string }, situation: Situation, now: Date): Decision | undefined {
  try {
    return decide(schedule, situation, now)
  } catch (error) {
    if (!(error instanceof CronError)) throw error
    const message = `It was paused: ${error.field} ${error.message}.`
    return { due: schedule.next_run_at ?? schedule.now, next: null, fault: { code: 'refused', message } }
  }
}

/** Creates the task. What the engine refuses is rolled back alone and becomes the reason why there is no task. */
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

/** Shown in the agent's log and in the schedule: no due time is lost silently. */
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
