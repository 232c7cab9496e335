import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isRemote, type LockedTask, type TaskChange } from '../task.ts'
import { mayWarn } from './model-warnings.ts'
import { consumption, freedLimits, nextRow, toolCallMove } from './task-changes.ts'
import { subscriptionsIn } from './task-outbox.ts'
import type { Guard } from './task-statement.ts'

/** A task that a claim of this process holds, as its last write left it. */
export interface KnownTask {
  task: LockedTask
  /** Version of its row: see `WrittenTask`. */
  row_version: string
  /** When its agent's activity was last recorded, by `performance.now()`. */
  active_at: number
}

/** Members of a change that the guarded statement can write. A change with any other member needs the task's lock. */
const plainMembers = new Set<keyof TaskChange>([
  ...(['task', 'counted', 'status', 'wait', 'output', 'usage', 'crashes', 'job', 'steps', 'events'] as const),
  ...(['logs', 'warnings', 'secrets', 'outbox', 'consumed', 'calls', 'hold'] as const),
])

/**
 * If more time passed since the decision, for example in a suspended process, the write is decided again under the
 * lock: its hour may have been aggregated already.
 */
const agesMax_seconds = 10

/** An agent's recorded activity is up to date for this long. */
const fresh_ms = 1000

/**
 * The task as its next write finds it unless another process changes it; undefined if the write needs the lock. `now`
 * is the database's time in milliseconds.
 */
export function foreseen({ task, active_at }: KnownTask, now: number): LockedTask | undefined {
  const { agent, hold } = task
  const isPlain =
    agent !== null &&
    !task.has_budget &&
    task.parent_task_id === null &&
    (hold === null || (hold.budget_ids.length === 0 && !hold.needs && !hold.late)) &&
    !isRemote(task)
  if (!isPlain) return undefined
  const event_at = new Date(Math.max(now, Date.parse(task.event_at))).toISOString()
  const is_fresh = performance.now() - active_at < fresh_ms
  return { ...task, now: event_at, event_at, agent: { ...agent, is_fresh } }
}

/** Whether the guarded statement can write all of a change. */
export function isPlain(change: TaskChange): boolean {
  const { status, job, hold, steps = [] } = change
  return (
    Object.entries(change).every(
      ([member, value]) => plainMembers.has(member as keyof TaskChange) || isNothing(value),
    ) &&
    (status === undefined || status === 'completed') &&
    (job === undefined || job.kind === 'end') &&
    !hold?.needs &&
    (hold?.budget_ids.length ?? 0) === 0 &&
    !mayWarn(change) &&
    freedLimits(change).length === 0 &&
    steps.every((step) => toolCallMove(step).length === 0)
  )
}

function isNothing(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.length === 0)
}

/** The known state of a task after a write that leaves it with its claim. */
export function knownAfter(change: TaskChange, row_version: string, active_at = -Infinity): KnownTask {
  const { task } = change
  const {
    id: _id,
    output: _output,
    error: _error,
    cancel_requested: _asked,
    finished: _finished,
    events,
    started,
    ...row
  } = nextRow(change, undefined)
  const { ledger: _ledger, ...kept } = task
  return {
    task: {
      ...kept,
      ...row,
      last_sequence: task.last_sequence + events,
      started_at: task.started_at ?? (started ? task.event_at : null),
    },
    row_version,
    active_at: consumption(change).active ? performance.now() : active_at,
  }
}

/**
 * The guard of a foreseen write: locks the tasks if they are as their claims know them. It checks their rows, the
 * states of their agents, the version of their organizations' model providers and the subscriptions to their events. It
 * also checks that there are no budgets, that the credential has tokens left this hour, and that the decision is
 * recent. It is open only if all of that holds for all tasks.
 */
export function guardOf(
  { fragment }: Sql,
  all: readonly { task: LockedTask; row_version: string }[],
  tokens_per_hour: number,
): Guard {
  const given = all
    .map(({ task, row_version }) => {
      const { id, project_id, org_id, agent_id, credential_id, root_task_id, agent } = task
      const { providers_version, subscriptions } = task
      const { name, status, settles_to, token_subject, max_concurrent_tasks } = agent!
      const root = root_task_id ?? id
      return {
        id,
        row_version,
        subjects: [agent_id, `proj_${project_id}`, org_id, credential_id, root],
        org_id,
        providers_version,
        subscriptions,
        agent_id,
        event_at: task.event_at,
        ...{ name, status, settles_to, token_subject, max_concurrent_tasks },
      }
    })
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
  return {
    parts: fragment`
    found as materialized (
      select as_known.id from jsonb_to_recordset(${jsonb(given)}::jsonb) as g(id text, row_version text, subjects text[], org_id text,
        providers_version int, subscriptions text[], agent_id text, event_at timestamptz, name text, status text, settles_to text, token_subject text, max_concurrent_tasks int)
      -- The limits lead to the indexes, once for each task, whatever the planner thinks of the sizes of the tables.
      cross join lateral (
        select from agent a where a.id = g.agent_id and a.name = g.name and a.status = g.status and a.settles_to is not distinct from g.settles_to
          and a.token_subject = g.token_subject and a.max_concurrent_tasks is not distinct from g.max_concurrent_tasks limit 1
      ) same_agent
      cross join lateral (
        select from organization o where o.id = g.org_id and o.model_providers_version = g.providers_version limit 1
      ) same_providers
      cross join lateral (select t.id from task t where t.id = g.id and t.xmin::text = g.row_version limit 1 for update of t) as_known
      where g.event_at between now() - make_interval(secs => ${agesMax_seconds}) and now() + interval '1 second'
        and not exists (select from budget b where b.subject = any(g.subjects))
        and ${subscriptionsIn({ fragment }, fragment`g.org_id`, fragment`g.id`)} is not distinct from g.subscriptions
        and coalesce((select u.tokens from token_usage u
          where u.subject = g.token_subject and u.hour = date_trunc('hour', now(), 'UTC')), 0) < ${tokens_per_hour}
    ), guard as materialized (select count(*) = ${all.length} as holds from found)`,
    holds: fragment`(select holds from guard)`,
  }
}
