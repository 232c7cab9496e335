import type { WaitReason } from '#contract/tasks/task-lifecycle.ts'
import { nothingReserved } from '../budgets/ledger.ts'
import { callId, inputOf, isCallers } from '../journal/call-states.ts'
import { agentHolds, waiting } from '../journal/endings.ts'
import type { WorkRow } from '../journal/work.queries.ts'
import { isAnswerable } from '../run/run-task.ts'
import type { LockedTask, Step, Wait } from '../task.ts'
import type { Change } from './lease.ts'

/** What the open calls of a task wait for, with the most urgent reason. */
export interface OpenWait {
  reason: WaitReason
  approval_ids: string[]
  call_ids: string[]
  /** Steps that the caller can answer. */
  step_ids: string[]
  child_ids: string[]
  credential_ids: string[]
  until: Date | undefined
}

/** What a task's open steps wait for; undefined if they wait for nothing from others. */
export function openWait(steps: readonly Step[]): OpenWait | undefined {
  const open = steps.filter(
    (step) => (step.status === 'started' && isWaiting(step)) || (step.status === 'unknown' && isAsked(step)),
  )
  if (open.length === 0) return undefined
  const of = <T>(found: (step: Step) => T | undefined): T[] => open.flatMap((step) => found(step) ?? [])
  const approval_ids = of((step) => (isCallers(step) ? undefined : inputOf(step).approval_id))
  const call_ids = of((step) => (isCallers(step) && step.status === 'started' ? callId(step) : undefined))
  const step_ids = open.filter(isAnswerable).map(({ id }) => id)
  const child_ids = of((step) => inputOf(step).child_task_id)
  const credential_ids = of((step) => inputOf(step).waits_for)
  const moments = of((step) => inputOf(step).until).toSorted()
  return {
    reason: reasonOf(open),
    ...{ approval_ids, call_ids, step_ids, child_ids, credential_ids },
    until: moments[0] === undefined ? undefined : new Date(moments[0]),
  }
}

function isWaiting(step: Step): boolean {
  return step.type === 'approval' || step.type === 'wait' || inputOf(step).waits_for !== undefined
}

/** Whether a person was asked for the outcome and has not answered. */
function isAsked(step: Step): boolean {
  const { approval_id, repeat } = inputOf(step)
  return approval_id !== undefined && repeat !== step.attempt
}

function reasonOf(open: readonly Step[]): WaitReason {
  if (open.some(({ status }) => status === 'unknown')) return 'unknown_outcome'
  if (open.some(({ type }) => type === 'approval')) return 'approval'
  if (open.some(isCallers)) return 'tool'
  if (open.some((step) => inputOf(step).child_task_id !== undefined)) return 'child'
  if (open.some((step) => inputOf(step).waits_for !== undefined)) return 'credential'
  return open.every(({ name }) => name === 'wait') ? 'timer' : 'input'
}

/**
 * Defers a task that its worker releases: until its agent works again, its calls get what they wait for, its budgets
 * have room, or `until`. Undefined if it waits for nothing.
 */
export function parked(
  task: LockedTask,
  { wants }: Pick<WorkRow, 'wants'>,
  steps: readonly Step[],
  until?: Date,
): Change | undefined {
  const held = agentHolds(task)
  if (held) return waiting(task, held, undefined)
  const open = openWait(steps)
  if (open) {
    const { reason, approval_ids: approvals, call_ids: calls, step_ids, child_ids: children, credential_ids } = open
    return waiting(task, reason, open.until ?? until, {
      ...{ approvals, calls, step_ids, children },
      ...(credential_ids.length > 0 && { credential_ids }),
    })
  }
  if (wants) {
    const wait: Wait = { reason: 'budget', since: task.now, until: null, approval_ids: [] }
    return {
      status: 'waiting',
      wait,
      job: { kind: 'end' },
      hold: { ...nothingReserved, budget_ids: [], needs: wants },
      events: [{ type: 'task.waiting', data: { wait } }],
    }
  }
  return until && waiting(task, 'timer', until)
}

/** Offers a task to the workers of its queue again. */
export function offeredAgain(task: LockedTask, { queue }: Pick<WorkRow, 'queue'>): Change {
  return { ...waiting(task, 'worker', undefined, { queue }), slot: task.slot, offer: { queue } }
}
