import { billionthsOf, dollarsOf } from '#contract/models/model-prices.ts'
import type { CallUse, LockedTask, Need, Reservation } from '../task.ts'
import { reserve, settle, type ReservationResult } from './budgets.ts'
import { holdWithout, nothingReserved, spentBy } from './ledger.ts'

/** Reserves what a call needs beside the reservations of its task's other calls. The ledger of the task is open. */
export function reserveBeside(task: LockedTask, need: Need): ReservationResult {
  const { ledger, hold } = task
  const budgets = ledger?.budgets ?? []
  // The budget of the task's limits is not stored, so it gets the task's reservations here.
  const own = budgets.find(({ id }) => id === null)
  if (own && hold) {
    own.held_tokens += hold.tokens
    own.held_cost += billionthsOf(hold.cost_usd)
  }
  if (ledger) ledger.settled = true
  return reserve(budgets, need)
}

/** The reservation of a task with one more call. */
export function holdWith(hold: Reservation | null, more: Reservation | null): Reservation | null {
  const isNothing = !hold || (hold.needs !== undefined && !hold.late)
  if (isNothing || !more) return more ?? (isNothing ? null : hold)
  return {
    ...(hold.late && { late: true }),
    tokens: hold.tokens + more.tokens,
    cost_usd: dollarsOf(billionthsOf(hold.cost_usd) + billionthsOf(more.cost_usd)),
    budget_ids: [...new Set([...hold.budget_ids, ...more.budget_ids])],
  }
}

/**
 * Releases the reservation of one call, counts its usage, and returns the reservation of the task's other calls. The
 * ledger of the task is open.
 */
export function settleOne(
  task: LockedTask,
  part: Reservation | undefined,
  calls: readonly CallUse[],
): Reservation | null {
  const { ledger, hold } = task
  if (ledger) {
    ledger.settled = true
    ledger.near.push(...settle(ledger.budgets, part ?? null, spentBy(calls)))
  }
  if (!hold || !part) return hold
  const left = holdWithout(hold, part)!
  if (left.tokens > 0 || left.cost_usd > 0) return left
  return hold.needs ? { ...nothingReserved, budget_ids: [], needs: hold.needs } : null
}

/** The reservation of calls in flight whose worker released the task; null if there are none. */
export function lateHold(parts: readonly Reservation[]): Reservation | null {
  const hold = parts.reduce<Reservation | null>((sum, part) => holdWith(sum, part), null)
  return hold && { ...hold, late: true }
}
