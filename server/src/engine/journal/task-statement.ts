import { insertLogRows, type AgentLogRow } from '../../events/agent-log.ts'
import { insertEvents, noteEvents, type NewEvent, type WrittenEvent } from '../../events/outbox.ts'
import type { TaskEvent } from '../../events/streams/streams-hub.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import type { JobAttempt, Queue } from '../queue/queue.ts'
import type { Step } from '../task.ts'
import { taskColumns, type TaskRow } from './stored-task.ts'
import { usageParts, type AgentConsumption } from './usage.queries.ts'

/** What changes write; all of it belongs to the same tasks. */
export interface Written {
  /** Ids of tasks whose rows are returned. */
  awaited: string[]
  rows: { id: string }[]
  steps: Step[]
  events: TaskEvent[]
  logs: AgentLogRow[]
  /** Events for webhooks. */
  outbox: NewEvent[]
  /** Jobs to delete. */
  jobs: JobAttempt[]
  usage: AgentConsumption[]
}

/** The result of a statement for one task. */
export interface WrittenTask {
  /** Version of the row after the write; any change by others gives the row another one. */
  row_version: string
  /** The task's row, if it is awaited. */
  row: TaskRow | undefined
}

/** The written tasks by id, and the database's time of the write. Empty if the guard did not hold. */
export interface WrittenTasks {
  tasks: ReadonlyMap<string, WrittenTask>
  now: string | undefined
}

/** Expressions of a statement that precede its writes, and the condition of all writes. */
export interface Guard {
  parts: Fragment
  /** An expression that does not refer to rows: if it is true, everything is written, else nothing. */
  holds: Fragment
}

/**
 * Writes rows, steps, events, logs and usage, and deletes jobs, in one statement, because each further statement costs
 * a round trip. Empty parts are left out, because they cost time too. The tasks are locked already, or `guard` locks
 * them.
 */
export async function writeTasks(
  sql: Sql,
  queue: Pick<Queue, 'removal'>,
  { awaited, rows, steps, events, logs, outbox, jobs, usage }: Written,
  guard?: Guard,
): Promise<WrittenTasks> {
  const { fragment } = sql
  const holds = guard?.holds ?? fragment`true`
  const used = usageParts(sql, usage, holds)
  const awaitedRows =
    awaited.length > 0
      ? fragment`left join (select ${taskColumns(sql)} from changed where id = any(${awaited})) r on r.id = c.changed_id`
      : fragment``
  const written = await sql.run<
    Partial<WrittenEvent & TaskRow> & { changed_id: string; row_version: string; now: string }
  >(fragment`
    with ${guard ? fragment`${guard.parts},` : fragment``} changed as (
      update task t set status = c.status, wait = c.wait, output = coalesce(c.output, t.output), error = coalesce(c.error, t.error),
        usage = c.usage, unseen = c.unseen, attempt = c.attempt, writes = c.writes, crashes = c.crashes, worker_id = c.worker_id, job_id = c.job_id,
        job_attempt = c.job_attempt, slot = c.slot, backlog = t.backlog and c.job_id is null, hold = c.hold, cancel = c.cancel, expires_at = c.expires_at, last_sequence = t.last_sequence + c.events,
        cancel_requested_at = case when c.cancel_requested then greatest(c.at, t.updated_at) else t.cancel_requested_at end,
        started_at = case when c.started then coalesce(t.started_at, greatest(c.at, t.updated_at)) else t.started_at end,
        finished_at = case when c.finished then coalesce(t.finished_at, greatest(c.at, t.updated_at)) end, updated_at = greatest(c.at, t.updated_at)
      from (
        select *, coalesce(event_at, now()) as at
        from jsonb_to_recordset(${jsonb(rows)}::jsonb) as c(id text, status text, wait jsonb, output jsonb, error jsonb, usage jsonb,
          unseen int, attempt int, writes int, crashes int, worker_id text, job_id uuid, job_attempt int, slot text, hold jsonb, cancel jsonb, cancel_requested boolean,
          expires_at timestamptz, started boolean, finished boolean, events int, event_at timestamptz)
      ) c
      -- The list leads to the index whatever the planner thinks of the sizes of the two.
      where t.id = any(${rows.map(({ id }) => id)}) and t.id = c.id and ${holds}
      returning ${awaited.length > 0 ? fragment`t.*` : fragment`t.id`}, t.xmin::text as row_version
    ), journaled as (
      insert into task_step as s (task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage, turn,
        started_at, finished_at)
      select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage, decode(turn, 'base64'), now(), case when status <> 'started' then now() end
      from jsonb_to_recordset(${jsonb(steps)}::jsonb) as j(task_id text, index int, id text, agent_id text, type text, status text,
        attempt int, failures int, name text, input jsonb, output jsonb, error jsonb, model text, usage jsonb, turn text)
      where ${holds}
      on conflict (task_id, index) do update set status = excluded.status, attempt = excluded.attempt, failures = excluded.failures,
        name = excluded.name, input = excluded.input, output = excluded.output, error = excluded.error, model = excluded.model,
        usage = excluded.usage, turn = excluded.turn, finished_at = excluded.finished_at,
        started_at = case when excluded.status = 'started' then excluded.started_at else s.started_at end
    ), logged as (${insertLogRows(sql, logs, holds)}
    ), published as (
      insert into task_event (task_id, sequence, type, data, created_at)
      select task_id, sequence, type, data, created_at
      from jsonb_to_recordset(${jsonb(events)}::jsonb) as e(task_id text, sequence int, type text, data jsonb, created_at timestamptz)
      where ${holds}
    )
    ${used ? fragment`, ${used}` : fragment``}
    ${jobs.length > 0 ? fragment`, ended as (${queue.removal(sql, jobs)} and ${holds})` : fragment``}
    ${outbox.length > 0 ? fragment`, emitted as (${insertEvents(sql, outbox, holds)})` : fragment``}
    select c.*, now() as now${outbox.length > 0 ? fragment`, (select coalesce(bool_and(is_matched), true) from emitted) as is_matched` : fragment``}
      ${awaited.length > 0 ? fragment`, r.*` : fragment``}
    from (select id as changed_id, row_version from changed) c ${awaitedRows}`)
  if (outbox.length > 0) noteEvents(sql, written.slice(0, 1) as WrittenEvent[])
  const tasks = written.map(({ changed_id, row_version, now: _now, is_matched: _is_matched, ...row }) => {
    return [changed_id, { row_version, row: row.id ? (row as TaskRow) : undefined }] as const
  })
  return { tasks: new Map(tasks), now: written[0]?.now }
}
