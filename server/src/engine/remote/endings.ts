import { Problem } from '#contract/core/problems.ts'
import { isFinished, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { WorkCommand } from '#contract/tasks/work.ts'
import { cleanText, cleanValue } from '../../platform/clean-text.ts'
import { newId } from '../../platform/ids.ts'
import { nothingReserved } from '../budgets/ledger.ts'
import { lastText, type ModelCallOutput } from '../conversation/conversation.ts'
import type { StoredMessage } from '../conversation/turns.ts'
import { canceled, listCutShort, readReceipt } from '../journal/cancel.ts'
import { agentHolds, completed, expired, failed, joined, outputSoFar } from '../journal/endings.ts'
import { agentsWithDeferred, applyChanges } from '../journal/task-changes.ts'
import { listSteps, lockTasksWithWork } from '../journal/task-rows.ts'
import { extendWork, findWork, listLostWork } from '../journal/work.queries.ts'
import { checkFailurePolicy } from '../run/agent-failure-policy.ts'
import { outputSchema } from '../run/task-output.ts'
import { resultIssues } from '../tools/data-schema.ts'
import { judgeValue } from '../tools/schemas/schema-judge.ts'
import type { Step, TaskChange } from '../task.ts'
import type { Calls } from './calls.ts'
import { unreadMessages } from './claims.ts'
import { keepLate } from './late-holds.ts'
import { underLease, type Change, type Held, type Lease, type RemoteContext } from './lease.ts'
import { offeredAgain, parked } from './waits.ts'

/** The response to a worker's heartbeat. */
export interface Heartbeat {
  until: string
  command: WorkCommand | null
  deadline: string | null
  messages: StoredMessage[]
}

/** The state of a task after its lease was ended. */
export interface Ended {
  task_id: string
  status: TaskState
}

/** A worker that is asked to cancel must confirm within this time, or it loses the lease: see `forceCancels`. */
const cancelConfirm_ms = 10_000
/** After a call has waited this long, the worker is asked to park the task. */
const parkAfter_ms = 10_000

/** Extends a lease. Returns the command for the worker and new messages of people. */
export async function heartbeatWork(context: RemoteContext, lease: Lease): Promise<Heartbeat> {
  return underLease(context, lease, { journal: true }, async ({ tx, task, row, steps }) => {
    const until = await extendWork(tx, task.id)
    const messages = task.unseen > 0 ? await unreadMessages(tx, task.id) : []
    const result = { until, command: commandOf(task, row), deadline: deadlineOf(task), messages }
    return task.unseen > 0 ? { change: { read: { before_step: steps.length } }, result } : { result }
  })
}

function commandOf(task: Held['task'], row: Held['row']): WorkCommand | null {
  if (task.cancel) return 'cancel'
  const held = agentHolds(task)
  if (held) return held === 'agent_stopped' ? 'stop' : 'pause'
  const waits_ms = row.waits_since === null ? 0 : Date.parse(task.now) - Date.parse(row.waits_since)
  return waits_ms >= parkAfter_ms ? 'pause' : null
}

function deadlineOf({ cancel, cancel_requested_at, expires_at }: Held['task']): string | null {
  if (!cancel || cancel_requested_at === null) return expires_at
  return new Date(Date.parse(cancel_requested_at) + cancelConfirm_ms).toISOString()
}

/**
 * Completes the task.
 * @throws `invalid_output` if its data does not match the schema; nothing is changed then
 */
export async function completeWork(
  context: RemoteContext,
  lease: Lease,
  output: { content: string; data?: unknown },
): Promise<Ended> {
  const data = output.data === undefined ? null : cleanValue(output.data)
  if (data !== null) {
    // Outside of the task's lock, because validation may take long.
    const run = await underLease(context, lease, {}, async (held) => ({ result: held.run }))
    await judgeValue(outputSchema(run), data, run.party)
  }
  return underLease(context, lease, { journal: true }, async (held) => {
    const { task, steps, run } = held
    if (task.cancel) return end(held, await cancellation(held))
    const schema = outputSchema(run)
    const issues = schema
      ? resultIssues(schema, data).map((issue) => ({ ...issue, field: dataField(issue.field) }))
      : []
    if (issues.length > 0) throw new Problem('invalid_output', issues)
    const content = cleanText(output.content)
    const progress = { steps, usage: task.usage, unfinished: '' }
    return end(held, joined(answerOf(steps, content), completed(task, progress, { content, data })))
  })
}

function dataField(field: string): string {
  return field.replace(/^output/, 'output.data')
}

/** The event of the answer, unless a model wrote it through the gateway. */
function answerOf(steps: readonly Step[], content: string): Change | undefined {
  const last = steps.findLast(({ type, status }) => type === 'model_call' && status === 'completed')
  if (content === '' || (last?.output as ModelCallOutput | undefined)?.text === content) return undefined
  const data = { message_id: newId('msg'), step_id: null, role: 'assistant', content, tool_calls: [] }
  return { events: [{ type: 'message.completed', data }] }
}

/** Fails the task, or defers it if the worker gave up because the task waits for something. */
export async function failWork(
  context: RemoteContext,
  calls: Calls,
  lease: Lease,
  error: { code: string; message: string; retryable?: boolean },
): Promise<Ended> {
  const ended = await underLease(context, lease, { journal: true }, async (held) => {
    const { task, row, steps } = held
    if (task.cancel) return end(held, await cancellation(held))
    const waits = parked(task, row, steps)
    if (waits) return end(held, await keeping(calls, held, waits))
    const { code, message, retryable = false } = error
    const progress = { steps, usage: task.usage, unfinished: '' }
    const failure = { code: cleanText(code), message: cleanText(message), retryable, step_id: steps.at(-1)?.id ?? null }
    return end(held, failed(task, failure, progress))
  })
  if (ended.status === 'failed') await checkPolicy(context, lease)
  return ended
}

/** The same failure policy as for tasks that the service runs: an agent whose tasks fail in succession is stopped. */
export async function checkPolicy({ sql, bus }: RemoteContext, { task_id }: Lease): Promise<void> {
  const [task] = await sql<{ agent_id: string }>`select agent_id from task where id = ${task_id}`
  if (task && (await checkFailurePolicy(sql, task.agent_id))) bus.notify('agent', task.agent_id)
}

/** Defers the task until what it waits for is there. If it waits for nothing, it is offered again at once. */
export async function parkWork(
  context: RemoteContext,
  calls: Calls,
  lease: Lease,
  { reason, until }: { reason?: string | undefined; until?: string | null | undefined },
): Promise<Ended> {
  return underLease(context, lease, { journal: true }, async (held) => {
    const { task, row, steps } = held
    if (task.cancel) return end(held, await cancellation(held))
    const moment = until == null ? undefined : new Date(until)
    const log = {
      level: 'info' as const,
      message: `Task parked by its worker${reason ? `: ${reason}` : ''}`,
      context: {},
    }
    const asked = reason === 'input' ? questionOf(held) : undefined
    const change = parked(task, row, asked ? [...steps, asked] : steps, moment) ?? offeredAgain(task, row)
    const noted = joined({ logs: [log], ...(asked && { steps: [asked] }) }, change)
    return end(held, await keeping(calls, held, noted))
  })
}

/** The change of a task that its worker releases, with the reservations of calls in flight. */
async function keeping(calls: Calls, found: Parameters<typeof keepLate>[1], change: Change): Promise<Change> {
  const { hold } = found.task
  if (!hold && !change.hold) return change
  const late = await keepLate(calls, found)
  const needs = change.hold?.needs
  return { ...change, hold: needs ? { ...(late ?? { ...nothingReserved, budget_ids: [] }), needs } : late }
}

/** The step that a person's message answers. */
function questionOf({ task, steps }: Held): Step {
  return {
    task_id: task.id,
    index: steps.length,
    id: newId('step'),
    agent_id: task.agent_id,
    type: 'wait',
    status: 'started',
    attempt: 1,
    failures: 0,
    name: 'request_input',
    input: { tool_call_id: `park_${steps.length}`, arguments: {}, claim: task.attempt },
    output: null,
    error: null,
    model: null,
    usage: null,
  }
}

async function cancellation({ tx, task, steps }: Held): Promise<Change> {
  const { task: _, ...change } = canceled(task, task.cancel!, await readReceipt(tx, task.id))
  return { ...change, output: outputSoFar({ steps, unfinished: '' }), job: { kind: 'end' } }
}

function end({ task }: Held, change: Change): { change: Change; result: Ended } {
  return {
    change,
    result: { task_id: task.id, status: change.status ?? 'waiting' },
  }
}

/** Maximum number of tasks that one sweep handles. */
const lostBatch = 200

/**
 * Takes tasks back from workers without heartbeats, so that others continue from the journals, and ends tasks whose
 * time is over. Returns whether there may be more.
 */
export async function loseWork(context: RemoteContext, calls: Calls): Promise<boolean> {
  const { sql, queue, log } = context
  const ids = await listLostWork(sql, lostBatch)
  for (const id of ids) {
    const changes = await sql.begin(async (tx) => {
      const task = (await lockTasksWithWork(tx, [id])).get(id)
      const row = await findWork(tx, id)
      if (!task || !row || row.status !== 'claimed' || isFinished(task.status) || task.worker_id !== row.lease_id)
        return undefined
      const isExpired = task.expires_at !== null && Date.parse(task.expires_at) <= Date.parse(task.now)
      if (!isExpired && row.lease_holds) return undefined
      const steps = (await listSteps(tx, [id])).get(id) ?? []
      // The result of a call in flight is for the next worker.
      const isMade = !isExpired && (await calls.isMaking(tx, id, steps))
      const cut = (isMade ? undefined : (await listCutShort(tx, [id])).get(id)) ?? []
      const progress = { steps, usage: task.usage, unfinished: lastText(steps, '') ?? '' }
      const { events = [], ...change }: Change = isExpired
        ? { ...expired(task, progress), job: { kind: 'end' } }
        : await keeping(calls, { tx, task, row, steps }, lost(task, row.worker))
      const done: TaskChange[] = [{ ...change, task, events: [...cut, ...events] }]
      return { published: await applyChanges(tx, queue, done), deferred: agentsWithDeferred(done) }
    })
    if (!changes) continue
    log.info({ task_id: id }, 'a remote worker lost its lease on a task; the task was requeued or ended')
    context.onJournaled({ ...changes, sent: true })
  }
  return ids.length === lostBatch
}

/**
 * Requeues the task, so that a worker of the service checks it and offers it again, like after the death of a worker.
 */
function lost(task: Held['task'], worker: string | null): Change {
  return {
    crashes: task.crashes + 1,
    job: { kind: 'first', start_after: undefined },
    slot: task.slot,
    logs: [
      {
        level: 'warn',
        message: `The lease of ${worker === null ? 'a worker' : `worker ${worker}`} ended; the task is offered again`,
        context: { attempt: task.attempt, worker },
      },
    ],
  }
}
