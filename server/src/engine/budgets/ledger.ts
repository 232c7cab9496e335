import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { billionthsOf, dollarsOf } from '#contract/models/model-prices.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { lockBudgets, writeBudgets } from './budget-rows.ts'
import { budgetFacts, fullestUnit, ownBudget, reserve, settle, type ReservationResult, type Spent } from './budgets.ts'
import type { LockedTask, TaskChange, CallUse, Reservation, Need } from '../task.ts'

/** The reservation of a waiting task, which reserves nothing. */
export const nothingReserved = { tokens: 0, cost_usd: 0, budget_ids: [] } as const satisfies Reservation

/** Locks the budgets of locked tasks. Tasks that share a budget share its state. */
export async function openLedger(tx: Sql, all: readonly LockedTask[]): Promise<void> {
  for (const task of all) task.ledger = { budgets: [], settled: false, near: [] }
  const tasks = all.filter(({ has_budget }) => has_budget)
  if (tasks.length === 0) return
  for (const [task, budgets] of await lockBudgets(tx, tasks)) {
    const own = ownBudget(task.id, task.budget, task.usage)
    task.ledger = { budgets: own ? [...budgets, own] : budgets, settled: false, near: [] }
  }
}

/** Reserves what a call needs, after the calls in `ended` are settled. The ledger of the task is open. */
export function reserveCall(task: LockedTask, ended: readonly CallUse[], need: Need): ReservationResult {
  settleTask(task, ended)
  return reserve(task.ledger?.budgets ?? [], need)
}

/**
 * Settles the calls that ended with these changes, and the reservations of tasks that end or are deferred. Writes all
 * changed budgets, including new reservations. Returns the changes with budget warnings as their first events, because
 * the end of a task is its last event.
 */
export async function settleChanges(tx: Sql, changes: readonly TaskChange[]): Promise<readonly TaskChange[]> {
  const ending = changes.filter((change) => endsCall(change) || releases(change))
  const closed = ending
    .map(({ task }) => task)
    .filter(({ ledger, hold }) => !ledger && hold && hold.budget_ids.length > 0)
  if (closed.length > 0) await openLedger(tx, closed)
  const changed = settled(changes)
  await writeBudgets(
    tx,
    changes.flatMap(({ task }) => task.ledger?.budgets ?? []),
  )
  return changed
}

/** The part of `settleChanges` that decides. The ledgers of the tasks are open, and are changed in place. */
export function settled(changes: readonly TaskChange[]): TaskChange[] {
  for (const change of changes)
    if (endsCall(change) || releases(change)) settleTask(change.task, change.calls ?? [], change.hold)
  return changes.map((change) => {
    const near = change.task.ledger?.near ?? []
    if (near.length === 0) return change
    const warnings = near.map((budget) => ({
      type: 'budget.warning' as const,
      data: budgetFacts(budget, fullestUnit(budget)),
    }))
    return { ...change, events: [...warnings, ...(change.events ?? [])] }
  })
}

/** What changes mean for tasks that wait for budgets: whether a task began to wait, and whether there may be room. */
export function budgetSignals(changes: readonly TaskChange[]): { waits: boolean; roomMade: boolean } {
  return {
    waits: changes.some(({ hold }) => hold?.needs !== undefined),
    roomMade: changes.some(
      ({ task: { ledger, hold } }) =>
        ledger?.settled === true && hold !== null && (hold.budget_ids.length > 0 || hold.late),
    ),
  }
}

/** The reservation of a task after a change. */
export function reservationAfter(change: TaskChange): Reservation | null {
  if (change.hold !== undefined) return change.hold
  if (endsCall(change) || releases(change)) return null
  const { hold } = change.task
  // The task continues, and its next call states its needs again.
  return hold?.late && hold.needs && change.job ? { ...hold, needs: undefined } : hold
}

/** Releases a task's reservation except for the part that it keeps, and counts the usage of its calls. */
function settleTask(task: LockedTask, calls: readonly CallUse[], kept: Reservation | null = null): void {
  const { ledger, hold } = task
  if (!ledger || ledger.settled) return
  ledger.settled = true
  ledger.near.push(...settle(ledger.budgets, holdWithout(hold, kept), spentBy(calls)))
}

function endsCall({ calls = [] }: TaskChange): boolean {
  return calls.some(({ model }) => model !== undefined)
}

/** Whether a change releases the task's reservation: the task ended, no worker runs it, or it has a new reservation. */
function releases({ task, status = task.status, job, hold }: TaskChange): boolean {
  if (task.hold === null) return false
  return isFinished(status) || hold !== undefined || (job !== undefined && !task.hold.late)
}

/** A reservation without a part of it. */
export function holdWithout(hold: Reservation | null, part: Reservation | null): Reservation | null {
  if (!hold || !part) return hold
  const tokens = Math.max(0, hold.tokens - part.tokens)
  const cost = Math.max(0, billionthsOf(hold.cost_usd) - billionthsOf(part.cost_usd))
  return { ...hold, tokens, cost_usd: dollarsOf(cost) }
}

/** The total usage of model calls. Unknown costs are not counted. */
export function spentBy(calls: readonly CallUse[]): Spent | undefined {
  const models = calls.filter(({ model }) => model !== undefined)
  if (models.length === 0) return undefined
  return {
    tokens: models.reduce((sum, { input_tokens, output_tokens }) => sum + input_tokens + output_tokens, 0),
    cost_usd: dollarsOf(models.reduce((sum, { cost_usd }) => sum + billionthsOf(cost_usd ?? 0), 0)),
  }
}
