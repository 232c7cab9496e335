import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { MetadataInput, TaskBudget } from '#contract/resources/agents.ts'
import type { Actor } from '#contract/accounts/audit.ts'
import { mergePatch } from '#contract/core/merge-patch.ts'
import { invalid, invalidQuery, notFound } from '#contract/core/problems.ts'
import * as operations from '#contract/tasks/schedules.ts'
import type { Context } from '../../context.ts'
import { requireKeptFiles } from '../../engine/files/input-files.ts'
import { requireInput } from '../../engine/tools/data-schema.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { check } from '../../http/validation.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId, newId } from '../../platform/ids.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { requireMade, requireRoom, taskView } from '../tasks/tasks.queries.ts'
import { cleanCron, CronError } from './cron.ts'
import { firstDue, nextRuns } from './due.ts'
import { createScheduledTask } from './scheduled-task.ts'
import {
  deleteSchedule,
  insertSchedule,
  isThreadOf,
  listSchedules,
  lockAgentOf,
  moveSchedule,
  requireSchedule,
  scheduleView,
  updateSchedule,
  type ScheduleContent,
  type ScheduleKey,
  type ScheduleRow,
} from './schedules.queries.ts'

/** Routes of schedules. */
export function scheduleRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  handle(app, http, operations.listSchedules, {
    load: loadProject,
    run: async ({ sql, loaded, query: { agent_id, status, limit, offset } }) => {
      const { schedules, total } = await listSchedules(sql, { project_id: loaded.id, agent_id, status, limit, offset })
      return {
        schedules: schedules.map(scheduleView),
        pagination: offsetPagination(total, limit, offset, schedules.length),
      }
    },
  })

  handle(app, http, operations.previewSchedule, {
    load: loadProject,
    run: async ({ sql, query }) => {
      const timing = { cron: cleanCron(query.cron), time_zone: query.time_zone ?? 'UTC' }
      return { ...timing, next_runs: previewRuns(timing, await databaseNow(sql)) }
    },
  })

  handle(app, http, operations.createSchedule, {
    load: loadProject,
    run: async ({ sql, loaded, body, principal, actor }) => {
      const agent = await requireAgent(sql, { id: body.agent_id, project_id: loaded.id })
      const { id: agent_id, project_id } = agent
      await judgeInput(agent.config, body.input, { ...agent, ...principal })
      requireInput(agent.config, body.input)
      await requireKeptFiles(sql, project_id, body.input)
      const content: ScheduleContent = {
        name: body.name.normalize('NFC'),
        cron: cleanCron(body.cron),
        time_zone: body.time_zone ?? 'UTC',
        input: body.input,
        thread_id: body.thread_id ?? null,
        priority: body.priority ?? 5,
        timeout_seconds: body.timeout_seconds ?? null,
        budget: body.budget ?? {},
        metadata: body.metadata ?? {},
        overlap: body.overlap ?? 'skip',
        catch_up: body.catch_up ?? 'once',
      }
      await requireThread(sql, content.thread_id, agent_id)
      const next_run_at = requireDue(content, await databaseNow(sql))
      const id = newId('sched')
      const schedule = { ...content, id, project_id, agent_id, next_run_at, created_by: principal.user_id }
      return sql.begin(async (tx) => {
        const row = await insertSchedule(tx, schedule)
        await recordAudit(tx, actor, { action: 'schedule.created', ...auditKey(row), after: audited(row) })
        return scheduleView(row)
      })
    },
  })

  handle(app, http, operations.getSchedule, {
    load: loadSchedule,
    run: async ({ loaded }) => scheduleView(loaded),
  })

  handle(app, http, operations.updateSchedule, {
    load: loadSchedule,
    run: async ({ sql, loaded, body, principal, actor }) => {
      if (body.input !== undefined) {
        const { config } = await requireAgent(sql, { id: loaded.agent_id, project_id: loaded.project_id })
        await judgeInput(config, body.input, { ...loaded, ...principal })
      }
      return sql.begin(async (tx) => {
        const before = await requireSchedule(tx, loaded, { lock: true })
        const content = changed(before, body)
        if (body.input !== undefined) {
          const { config } = await requireAgent(tx, { id: before.agent_id, project_id: before.project_id })
          requireInput(config, body.input)
          await requireKeptFiles(tx, before.project_id, body.input)
        }
        if (content.thread_id !== before.thread_id) await requireThread(tx, content.thread_id, before.agent_id)
        const row = await updateSchedule(tx, before, content, await nextAfterChange(tx, before, content))
        const states = { before: audited(before), after: audited(row) }
        await recordAudit(tx, actor, { action: 'schedule.updated', ...auditKey(row), ...states })
        return scheduleView(row)
      })
    },
  })

  handle(app, http, operations.deleteSchedule, {
    load: loadSchedule,
    run: ({ sql, loaded, actor }) =>
      sql.begin(async (tx) => {
        const deleted = await deleteSchedule(tx, loaded)
        // A concurrent request may have deleted it.
        if (!deleted) await requireSchedule(tx, loaded)
        else await recordAudit(tx, actor, { action: 'schedule.deleted', ...auditKey(loaded), before: audited(loaded) })
        return { message: 'Schedule deleted', schedule_id: loaded.id }
      }),
  })

  handle(app, http, operations.pauseSchedule, {
    load: loadSchedule,
    run: ({ sql, loaded, actor }) => sql.begin((tx) => pause(tx, loaded, actor)),
  })
  handle(app, http, operations.resumeSchedule, {
    load: loadSchedule,
    run: ({ sql, loaded, actor }) => sql.begin((tx) => resume(tx, loaded, actor)),
  })

  handle(app, http, operations.triggerSchedule, {
    load: loadSchedule,
    run: ({ sql, loaded, principal, request_id, actor }) =>
      sql.begin(async (tx) => {
        const by = { user_id: principal.user_id, request_id }
        const id = await trigger(context, tx, loaded, by)
        await recordAudit(tx, actor, { action: 'schedule.triggered', ...auditKey(loaded), detail: { task_id: id } })
        const missing = notFound('schedule_not_found', 'schedule', loaded.id)
        return taskView(await requireMade(tx, { id, project_id: loaded.project_id }, missing))
      }),
  })
}

async function pause(tx: Sql, key: ScheduleKey, actor: Actor) {
  const before = await requireSchedule(tx, key, { lock: true })
  const row = before.status === 'paused' ? before : await moveSchedule(tx, before, null)
  const states = { before: audited(before), after: audited(row) }
  await recordAudit(tx, actor, { action: 'schedule.paused', ...auditKey(row), ...states })
  return result('Schedule paused', row)
}

/** Resumes a schedule from now on; due times during the pause do not count as missed. */
async function resume(tx: Sql, key: ScheduleKey, actor: Actor) {
  const before = await requireSchedule(tx, key, { lock: true })
  const row =
    before.status === 'active' ? before : await moveSchedule(tx, before, requireDue(before, await databaseNow(tx)))
  const states = { before: audited(before), after: audited(row) }
  await recordAudit(tx, actor, { action: 'schedule.resumed', ...auditKey(row), ...states })
  return result('Schedule resumed', row)
}

/** The members of a schedule for the audit log: those that users set. */
function audited(row: ScheduleRow) {
  const { id, agent_id, thread_id, name, status, cron, time_zone, input, priority, timeout_seconds } = row
  const { budget, metadata, overlap, catch_up, created_by, created_at } = row
  const timing = { cron, time_zone, overlap, catch_up }
  const task = { input, thread_id, priority, timeout_seconds, budget, metadata }
  return { id, agent_id, name, status, ...timing, ...task, created_by, created_at }
}

function auditKey({ id, project_id }: ScheduleRow) {
  return { target: id, project_id }
}

function result(message: string, { id, status, next_run_at }: ScheduleRow) {
  return { message, schedule_id: id, status, next_run_at }
}

async function trigger(
  context: Context,
  tx: Sql,
  loaded: ScheduleRow,
  by: { user_id: string; request_id: string },
): Promise<string> {
  const agent = await lockAgentOf(tx, loaded.agent_id)
  const schedule = await requireSchedule(tx, loaded, { lock: true })
  if (!agent) throw notFound('schedule_not_found', 'schedule', loaded.id)
  await requireRoom(tx, agent)
  return createScheduledTask(context, tx, schedule, agent, by)
}

type Change = { [Key in keyof ScheduleContent]?: ScheduleContent[Key] | undefined }

const merged = Type.Object({ budget: TaskBudget, metadata: MetadataInput })

/** The content of a schedule after a change. Merged members must respect their bounds as a whole. */
function changed(before: ScheduleRow, body: Change): ScheduleContent {
  const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as Change
  const content = {
    ...before,
    ...given,
    name: (body.name ?? before.name).normalize('NFC'),
    cron: cleanCron(body.cron ?? before.cron),
    budget: mergePatch(before.budget, body.budget ?? {}) as Record<string, unknown>,
    metadata: mergePatch(before.metadata, body.metadata ?? {}) as Record<string, unknown>,
  }
  const [first, ...others] = check(merged, content)
  if (first) throw invalid(first, ...others)
  return content
}

async function nextAfterChange(tx: Sql, before: ScheduleRow, content: ScheduleContent): Promise<string | null> {
  if (content.cron === before.cron && content.time_zone === before.time_zone) return before.next_run_at
  const next = requireDue(content, await databaseNow(tx))
  return before.status === 'paused' ? null : next
}

/** The first due time; throws 400 for an invalid expression or one that is never due. */
function requireDue(timing: Pick<ScheduleRow, 'cron' | 'time_zone'>, now: Date): string {
  try {
    const next = firstDue(timing, now)
    if (next !== null) return next
  } catch (error) {
    if (!(error instanceof CronError)) throw error
    throw invalid({
      field: error.field,
      message: error.message,
      code: 'invalid_format',
      provided: timing[error.field],
    })
  }
  throw invalid({ field: 'cron', message: 'is never due', code: 'invalid_format', provided: timing.cron })
}

/** The due times of a preview; throws 400 for an invalid expression. */
function previewRuns(timing: Pick<ScheduleRow, 'cron' | 'time_zone'>, now: Date): string[] {
  try {
    return nextRuns(timing, null, now)
  } catch (error) {
    if (!(error instanceof CronError)) throw error
    throw invalidQuery({
      field: error.field,
      message: error.message,
      code: 'invalid_format',
      provided: timing[error.field],
    })
  }
}

/** The current time by the database's clock, which all processes share. */
async function databaseNow(sql: Sql): Promise<Date> {
  const [row] = await sql<{ now: string }>`select now() as now`
  return new Date(row!.now)
}

async function requireThread(sql: Sql, thread_id: string | null, agent_id: string): Promise<void> {
  if (thread_id === null || (isId('thread', thread_id) && (await isThreadOf(sql, thread_id, agent_id)))) return
  throw notFound('thread_not_found', 'thread', thread_id.slice(0, 100))
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadSchedule(loading: Loading): Promise<ScheduleRow> {
  const project = await loadProject(loading)
  return requireSchedule(loading.sql, { id: loading.params.schedule_id!, project_id: project.id })
}
