import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import {
  findApproval,
  listExpiredApprovals,
  moveApproval,
  type Answer,
  type ApprovalRow,
} from '../journal/approvals.queries.ts'
import { callHash } from '../tools/call-hash.ts'
import { inputOf, type ApprovedCall } from '../journal/call-states.ts'
import { canceled, cutShort, readReceipt, requested } from '../journal/cancel.ts'
import type { Queue } from '../queue/queue.ts'
import { applyAnswers, resumed, type JournalNotice } from '../journal/resume.ts'
import { findStep, lockTasks } from '../journal/task-rows.ts'
import { stepEvents } from '../run/tool-plan.ts'
import { checkArguments } from '../tools/arguments.ts'
import type { LockedTask, Step, TaskChange } from '../task.ts'

/** How a person resolves an approval. */
export interface Resolution {
  /**
   * `approve` lets the call be made; for a recovery, repeated. `reject` refuses the call; for a recovery, the call
   * counts as failed. The model reads `reason` as the result.
   */
  decision: 'approve' | 'reject'
  /** Edited arguments, in place of the model's; checked against the tool's schema. */
  arguments?: Record<string, unknown> | undefined
  /** For an approved recovery: the call took effect, and this was its result. */
  result?: string | undefined
  reason: string | null
  user_id: string
}

const batch = 200

/**
 * Stores the resolution of an approval and lets its task continue. The first resolution wins.
 * @throws `approval_not_found`, `validation_error` for arguments that do not match the schema, and
 *   `approval_already_resolved`, also after a timeout or the end of the task.
 */
export async function resolveApproval(
  tx: Sql,
  queue: Queue,
  approval_id: string,
  resolution: Resolution,
): Promise<JournalNotice> {
  const approval = await findApproval(tx, approval_id)
  if (!approval) throw notFound('approval_not_found', 'approval', approval_id)
  const argumentError =
    resolution.arguments &&
    approval.parameters &&
    checkArguments({ name: approval.tool, parameters: approval.parameters }, resolution.arguments)
  if (argumentError) {
    const message = argumentError.replace(`The arguments of ${approval.tool} are`, 'arguments are')
    throw invalid({ field: 'arguments', message, code: 'invalid_format' })
  }
  const task = (await lockTasks(tx, [approval.task_id])).get(approval.task_id)
  const { decision, arguments: edited, result, reason, user_id } = resolution
  const answer: Answer = {
    status: decision === 'approve' ? 'approved' : 'rejected',
    approved_arguments: edited,
    result,
    resolved_by: user_id,
    reason,
  }
  const moved = task && !isFinished(task.status) ? await moveApproval(tx, approval_id, answer) : undefined
  if (!task || !moved) {
    const current = await findApproval(tx, approval_id)
    throw new Problem('approval_already_resolved', {
      resource_type: 'approval',
      resource_id: approval_id,
      current_status: current?.status ?? 'expired',
    })
  }
  const after = afterAnswer(await requireStep(tx, moved), moved)
  return applyAnswers(tx, queue, [
    resumed(task, {
      steps: [after],
      // A call that may be repeated has its event when it is made.
      events: [resolvedEvent(moved, decision), ...(after.status === 'unknown' ? [] : stepEvents(after))],
      logs: [
        {
          level: 'info',
          message: `Approval of ${moved.tool} ${moved.status}`,
          context: { approval_id, kind: moved.kind, resolved_by: user_id, reason },
        },
      ],
    }),
  ])
}

async function requireStep(tx: Sql, { task_id, step_index }: ApprovalRow): Promise<Step> {
  const step = await findStep(tx, task_id, step_index)
  if (!step) throw new Error(`the approval's step ${step_index} of ${task_id} is not in the journal`)
  return step
}

/** The step that the question was about, after the resolution. */
function afterAnswer(step: Step, approval: ApprovalRow): Step {
  return step.type === 'approval' ? answered(step, approval) : recovered(step, approval)
}

/**
 * The approval's step after the resolution: its output is the call that may be made, or what the model reads instead.
 */
function answered(step: Step, { status, tool, arguments: asked, approved_arguments, reason }: ApprovalRow): Step {
  if (status === 'approved') {
    const args = approved_arguments ?? (asked as Record<string, unknown>)
    const output: ApprovedCall = { arguments: args, call_hash: callHash(tool, args) }
    return { ...step, status: 'completed', output }
  }
  const message =
    status === 'expired' ? 'The approval timed out.' : `The call was rejected${reason ? `: ${reason}` : '.'}`
  return notMade(step, status === 'expired' ? 'approval_expired' : 'approval_rejected', message)
}

/** The step of a call of unknown outcome, after a person stated the outcome or allowed a repeat. */
function recovered(step: Step, { status, result, reason }: ApprovalRow): Step {
  if (status === 'approved') {
    return result === null
      ? { ...step, status: 'unknown', input: { ...inputOf(step), repeat: step.attempt } }
      : { ...step, status: 'completed', output: { content: result } }
  }
  const text = reason ?? 'The call was interrupted; whether it took effect is unknown.'
  return notMade(step, 'tool_outcome_unknown', text)
}

function notMade(step: Step, code: string, message: string): Step {
  return { ...step, status: 'failed', output: { content: message }, error: { code, message, retryable: false } }
}

function resolvedEvent(approval: ApprovalRow, decision: Resolution['decision']) {
  const { id, step_id, kind, tool, reason, resolved_by } = approval
  return {
    type: 'approval.resolved' as const,
    data: { approval_id: id, step_id, kind, tool, decision, reason, resolved_by },
  }
}

/**
 * Resolves approvals whose time is over: rejects their calls, or cancels their tasks. `more` is set if there may be
 * further ones.
 */
export async function expireApprovals(tx: Sql, queue: Queue): Promise<JournalNotice & { more: boolean }> {
  const late = await listExpiredApprovals(tx, batch)
  const tasks = await lockTasks(tx, [...new Set(late.map(({ task_id }) => task_id))])
  const changes: TaskChange[] = []
  // One approval per task in a batch, because each changes the row of its task.
  const seen = new Set<string>()
  for (const { id, task_id } of late) {
    const task = tasks.get(task_id)
    if (!task || seen.has(task_id)) continue
    seen.add(task_id)
    const expired = await moveApproval(tx, id, { status: 'expired', resolved_by: null, reason: null })
    if (expired && !isFinished(task.status)) changes.push(await expiredChange(tx, task, expired))
  }
  const notice = await applyAnswers(tx, queue, changes)
  return { ...notice, more: changes.length > 0 && (late.length === batch || late.length > seen.size) }
}

async function expiredChange(tx: Sql, task: LockedTask, approval: ApprovalRow): Promise<TaskChange> {
  const { id, step_id, kind, tool, on_timeout } = approval
  const event = {
    type: 'approval.expired' as const,
    data: { approval_id: id, step_id, kind, tool, on_timeout },
  }
  const log = {
    level: 'warn' as const,
    message: `The approval of ${tool} timed out`,
    context: { approval_id: id },
  }
  const cancels = on_timeout === 'cancel'
  const request = { reason: 'An approval timed out.', mode: 'graceful' as const, user_id: task.created_by }
  if (cancels && task.worker_id === null) {
    const [change] = await cutShort(tx, [canceled(task, request, await readReceipt(tx, task.id))])
    const { events = [], logs = [], ...end } = change!
    return { ...end, events: [event, ...events], logs: [log, ...logs], job: { kind: 'forget' } }
  }
  const after = afterAnswer(await requireStep(tx, approval), approval)
  const { events = [], ...cancel } = cancels && !task.cancel ? requested(task, request) : {}
  const done = { steps: [after], events: [event, ...stepEvents(after), ...events], logs: [log] }
  return { ...resumed(task, done), ...cancel }
}
