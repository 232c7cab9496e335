import { billionthsOf, dollarsOf } from '#contract/models/model-prices.ts'
import type { CallUse, LockedTask, Need, Reservation } from '../task.ts'
import { reserve, settle, type ReservationResult } from './budgets.ts'
import { holdWithout, nothingReserved, spentBy } from './ledger.ts'

/** Reserves what a call needs beside what other calls of its task hold. The task's money is open. */
export function reserveBeside(task: LockedTask, need: Need): ReservationResult {
  const { ledger, hold } = task
  const budgets = ledger?.budgets ?? []
  // What the task itself holds is written nowhere else.
  const own = budgets.find(({ id }) => id === null)
  if (own && hold) {
    own.held_tokens += hold.tokens
    own.held_cost += billionthsOf(hold.cost_usd)
  }
  if (ledger) ledger.settled = true
  return reserve(budgets, need)
}

/** What a task holds with one call more. */
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

/** Takes back what one call held, counts what it used, and gives what the task's other calls hold. The task's money is open. */
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

/** What calls hold that are still being made although their worker let their task go; null where there are none. */
export function lateHold(parts: readonly Reservation[]): Reservation | null {
  const hold = parts.reduce<Reservation | null>((sum, part) => holdWith(sum, part), null)
  return hold && { ...hold, late: true }
}
