import Type from 'typebox'
import { MetadataInput, TaskBudget } from '../resources/agents.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { timeZoneMax } from '../core/timestamps.ts'
import { scheduleCatchUps, scheduleErrors, scheduleOverlaps, scheduleStates } from './schedule-lifecycle.ts'
import {
  agentParameter,
  Choice,
  Confirmation,
  FreeObject,
  NameText,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'
import { queuedTaskExample, Task, taskBounds, taskInput } from './tasks.ts'

const base = '/api/v1/projects/{project_id}/schedules'

/** Bounds of schedules. Lengths count code points. */
export const scheduleBounds = { name: 100, cron: 100, time_zone: timeZoneMax } as const

/** Number of next due times in a response. */
export const nextRunsMax = 5

const cron = Type.String({
  minLength: 1,
  maxLength: scheduleBounds.cron,
  description:
    'Cron expression: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. Supports names (`mon`, `jan`), ranges, lists, steps, `L`, `W` and `#`.',
})
const time_zone = Type.String({
  minLength: 1,
  maxLength: scheduleBounds.time_zone,
  description: 'An IANA time zone, such as Europe/Berlin.',
})
const name = NameText(scheduleBounds.name, 'Display name; need not be unique.')
const priority = Type.Integer({ minimum: 0, maximum: taskBounds.priority, description: 'Priority of the tasks.' })
const timeout_seconds = Type.Integer({
  minimum: 1,
  maximum: taskBounds.timeout_seconds,
  description: 'A task of the schedule expires so many seconds after its start.',
})
const thread_id = Type.String({ minLength: 1, maxLength: 100, description: 'The thread that the tasks continue.' })
const overlap = Choice(scheduleOverlaps, {
  description:
    'What happens if the schedule is due while an earlier task of it is open: `skip` skips this time, `queue` creates the task anyway.',
})
const catch_up = Choice(scheduleCatchUps, {
  description:
    'What happens if due times passed while the service was down: `once` creates one task for all of them, `none` waits for the next due time.',
})

const NextRuns = Type.Array(Timestamp, {
  maxItems: nextRunsMax,
  description: `The next due times, up to ${nextRunsMax}; empty while the schedule is paused.`,
})

/** A schedule: it creates a task of an agent at every due time. */
export const Schedule = Named(
  'Schedule',
  Type.Object({
    id: Type.String(),
    project_id: Type.String(),
    agent_id: Type.String(),
    thread_id: Nullable(Type.String()),
    name: Type.String(),
    cron: Type.String(),
    time_zone: Type.String(),
    input: taskInput,
    priority,
    timeout_seconds: Nullable(Type.Integer()),
    budget: FreeObject,
    metadata: FreeObject,
    status: Choice(scheduleStates),
    overlap,
    catch_up,
    next_run_at: Nullable({ ...Timestamp, description: 'Next due time; null while the schedule is paused.' }),
    next_runs: NextRuns,
    last_run_at: Nullable({ ...Timestamp, description: 'When the schedule last created a task.' }),
    last_task_id: Nullable(Type.String()),
    tasks_created: Type.Integer({ minimum: 0 }),
    skipped: Type.Integer({ minimum: 0, description: 'Number of due times that created no task.' }),
    last_error: Nullable(
      Type.Object(
        { code: Choice(scheduleErrors), message: Type.String(), at: Timestamp },
        { description: 'Why the last due time created no task; null after the next task.' },
      ),
    ),
    created_by: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)

const example = {
  id: 'sched_01jcm3x5v8f9a2b4c6d8e0g2h4',
  project_id: 'proj_42',
  agent_id: agentParameter.example,
  thread_id: null,
  name: 'Morning report',
  cron: '30 7 * * mon-fri',
  time_zone: 'Europe/Berlin',
  input: 'Summarize what happened since yesterday.',
  priority: 5,
  timeout_seconds: null,
  budget: {},
  metadata: { team: 'support' },
  status: 'active',
  overlap: 'skip',
  catch_up: 'once',
  next_run_at: '2026-11-23T06:30:00.000Z',
  next_runs: [
    '2026-11-23T06:30:00.000Z',
    '2026-11-24T06:30:00.000Z',
    '2026-11-25T06:30:00.000Z',
    '2026-11-26T06:30:00.000Z',
    '2026-11-27T06:30:00.000Z',
  ],
  last_run_at: null,
  last_task_id: null,
  tasks_created: 0,
  skipped: 0,
  last_error: null,
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}
const ranExample = {
  ...example,
  last_run_at: '2026-11-20T06:30:00.412Z',
  last_task_id: queuedTaskExample.id,
  tasks_created: 12,
}

const common = { error_format: 'agents', tag: 'Schedules', credentials: anyCredential, extension: true } as const
const all = { ...common, path: base, params: { project_id: projectParameter } } as const
const one = {
  ...common,
  path: `${base}/{schedule_id}`,
  params: { project_id: projectParameter, schedule_id: { description: 'The schedule.', example: example.id } },
} as const

export const listSchedules = defineOperation({
  ...all,
  id: 'listSchedules',
  command: 'schedules list',
  sdk: 'schedules.list',
  method: 'GET',
  summary: 'List schedules',
  description: 'Schedules of a project, newest first.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    agent_id: Type.Optional(Type.String({ maxLength: 100, description: 'Only schedules of this agent.' })),
    status: Type.Optional(Choice(scheduleStates, { description: 'Only schedules in this state.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of schedules.',
      schema: Named('ScheduleList', Type.Object({ schedules: Type.Array(Schedule), pagination: OffsetPagination })),
      example: { schedules: [ranExample], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const previewSchedule = defineOperation({
  ...all,
  path: `${base}/preview`,
  id: 'previewSchedule',
  command: 'schedules preview',
  sdk: 'schedules.preview',
  method: 'GET',
  summary: 'Preview a cron expression',
  description: 'The next due times of a schedule with this expression. Nothing is created.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: Type.Object({ cron, time_zone: Type.Optional({ ...time_zone, default: 'UTC' }) }),
  responses: [
    {
      status: 200,
      description: 'The next due times.',
      schema: Named(
        'SchedulePreview',
        Type.Object({ cron: Type.String(), time_zone: Type.String(), next_runs: NextRuns }),
      ),
      example: { cron: example.cron, time_zone: example.time_zone, next_runs: example.next_runs },
    },
  ],
  problems: ['project_not_found'],
})

export const createSchedule = defineOperation({
  ...all,
  id: 'createSchedule',
  audit: 'schedule.created',
  command: 'schedules create',
  sdk: 'schedules.create',
  method: 'POST',
  summary: 'Create a schedule',
  description:
    'Creates exactly one task of the agent at every due time from now on, with any number of processes. A schedule that would never be due is refused.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    agent_id: Type.String({ minLength: 1, maxLength: 100, description: 'The agent that gets the tasks.' }),
    name,
    cron,
    time_zone: Type.Optional({ ...time_zone, default: 'UTC' }),
    input: taskInput,
    thread_id: Type.Optional(thread_id),
    priority: Type.Optional({ ...priority, default: 5 }),
    timeout_seconds: Type.Optional(timeout_seconds),
    budget: Type.Optional(TaskBudget),
    metadata: Type.Optional(MetadataInput),
    overlap: Type.Optional({ ...overlap, default: 'skip' }),
    catch_up: Type.Optional({ ...catch_up, default: 'once' }),
  }),
  body_example: {
    agent_id: example.agent_id,
    name: example.name,
    cron: example.cron,
    time_zone: example.time_zone,
    input: example.input,
    metadata: example.metadata,
  },
  responses: [{ status: 201, description: 'The schedule.', schema: Schedule, example }],
  problems: ['file_not_found', 'project_not_found', 'agent_not_found', 'thread_not_found'],
})

export const getSchedule = defineOperation({
  ...one,
  id: 'getSchedule',
  command: 'schedules get',
  sdk: 'schedules.get',
  method: 'GET',
  summary: 'Read a schedule',
  description: 'The schedule with its next due times, and the result of the last one.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The schedule.', schema: Schedule, example: ranExample }],
  problems: ['project_not_found', 'schedule_not_found'],
})

export const updateSchedule = defineOperation({
  ...one,
  id: 'updateSchedule',
  audit: 'schedule.updated',
  command: 'schedules update',
  sdk: 'schedules.update',
  method: 'PUT',
  summary: 'Update a schedule',
  description:
    'Given members replace, absent members stay; `budget` and `metadata` are merged as JSON Merge Patch (RFC 7396). A new `cron` or `time_zone` sets the next due time from now. The agent of a schedule cannot change.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    name: Type.Optional(name),
    cron: Type.Optional(cron),
    time_zone: Type.Optional(time_zone),
    input: Type.Optional(taskInput),
    thread_id: Type.Optional(Nullable(thread_id)),
    priority: Type.Optional(priority),
    timeout_seconds: Type.Optional(Nullable(timeout_seconds)),
    budget: Type.Optional(TaskBudget),
    metadata: Type.Optional(MetadataInput),
    overlap: Type.Optional(overlap),
    catch_up: Type.Optional(catch_up),
  }),
  body_example: { cron: '0 8 * * *' },
  responses: [{ status: 200, description: 'The schedule.', schema: Schedule, example: ranExample }],
  problems: ['file_not_found', 'project_not_found', 'schedule_not_found', 'thread_not_found'],
})

export const deleteSchedule = defineOperation({
  ...one,
  id: 'deleteSchedule',
  audit: 'schedule.deleted',
  command: 'schedules delete',
  sdk: 'schedules.delete',
  method: 'DELETE',
  summary: 'Delete a schedule',
  description: 'Its tasks stay, and open ones continue.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The schedule is deleted.',
      schema: Confirmation({ schedule_id: Type.String() }),
      example: { message: 'Schedule deleted', schedule_id: example.id },
    },
  ],
  problems: ['project_not_found', 'schedule_not_found'],
})

const actionTexts = {
  pause: 'The schedule is no longer due. Its open tasks continue.',
  resume:
    'The schedule is due again from the next due time on. Due times that passed during the pause create no tasks.',
} as const

function action<const Verb extends 'pause' | 'resume'>(verb: Verb) {
  const status = verb === 'pause' ? 'paused' : 'active'
  const next_run_at = verb === 'pause' ? null : example.next_run_at
  return defineOperation({
    ...one,
    path: `${one.path}/${verb}`,
    id: `${verb}Schedule`,
    audit: `schedule.${verb}d`,
    command: `schedules ${verb}`,
    sdk: `schedules.${verb}`,
    method: 'POST',
    summary: `${verb === 'pause' ? 'Pause' : 'Resume'} a schedule`,
    description: `${actionTexts[verb]} If the schedule is already in that state, the response is the same and nothing changes.`,
    scope: 'agents:write',
    bucket: 'tasks.action',
    responses: [
      {
        status: 200,
        description: 'The new state of the schedule.',
        schema: Named(
          'ScheduleActionResult',
          Confirmation({
            schedule_id: Type.String(),
            status: Choice(scheduleStates),
            next_run_at: Nullable(Timestamp),
          }),
        ),
        example: {
          message: verb === 'pause' ? 'Schedule paused' : 'Schedule resumed',
          schedule_id: example.id,
          status,
          next_run_at,
        },
      },
    ],
    problems: ['project_not_found', 'schedule_not_found'],
  })
}

export const pauseSchedule = action('pause')
export const resumeSchedule = action('resume')

export const triggerSchedule = defineOperation({
  ...one,
  path: `${one.path}/trigger`,
  id: 'triggerSchedule',
  audit: 'schedule.triggered',
  command: 'schedules trigger',
  sdk: 'schedules.trigger',
  method: 'POST',
  summary: 'Trigger a schedule',
  description:
    'Creates a task now, even if the schedule is paused or an earlier task is open. The due times do not change.',
  scope: 'agents:write',
  bucket: 'tasks.create',
  responses: [
    {
      status: 201,
      description: 'The task.',
      schema: Task,
      example: { ...queuedTaskExample, schedule_id: example.id, input: example.input, metadata: example.metadata },
    },
  ],
  problems: ['project_not_found', 'schedule_not_found', 'agent_not_running', 'queue_full'],
})

export const scheduleOperations: Operation[] = [
  listSchedules,
  previewSchedule,
  createSchedule,
  getSchedule,
  updateSchedule,
  deleteSchedule,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
] as Operation[]
