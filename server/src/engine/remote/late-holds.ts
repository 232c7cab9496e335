import { lateHold, settleOne } from '../budgets/shared-holds.ts'
import { openLedger, budgetSignals } from '../budgets/ledger.ts'
import { applyChanges } from '../journal/task-changes.ts'
import { listSteps, lockTasksWithWork } from '../journal/task-rows.ts'
import { findWork, listLateHolds, noteWork } from '../journal/work.queries.ts'
import type { Reservation } from '../task.ts'
import { inputOf } from '../journal/call-states.ts'
import type { Calls } from './calls.ts'
import type { Held, RemoteContext } from './lease.ts'

/** The reservations of a task's calls in flight, by their steps. */
type Parts = Record<string, Reservation>
type Found = Pick<Held, 'tx' | 'task' | 'row' | 'steps'>

/**
 * The reservations of a task's calls in flight. With `isHeld`, calls of the current lease count, because their process
 * may be about to start them. The task is locked.
 */
async function partsInFlight(calls: Calls, { tx, task, row, steps }: Found, isHeld: boolean): Promise<Parts> {
  const parts: Parts = {}
  for (const [id, part] of Object.entries(row.holds)) {
    const step = steps.find((one) => one.id === id)
    if (step?.status !== 'started') continue
    const isTheirs = isHeld && inputOf(step).claim === task.attempt
    if (isTheirs || (await calls.isMaking(tx, task.id, [step]))) parts[id] = part
  }
  return parts
}

/**
 * The reservation that a task keeps when its worker releases it: what its calls in flight may still use, because it is
 * spent when they end. Null if there are none.
 */
export async function keepLate(calls: Calls, found: Found): Promise<Reservation | null> {
  const parts = await partsInFlight(calls, found, false)
  if (Object.keys(found.row.holds).length > 0) await noteWork(found.tx, found.task.id, { holds: parts })
  return lateHold(Object.values(parts))
}

/**
 * Releases the reservations of calls of earlier leases that no process makes any more: they are repeated or dropped.
 * The ledger of the task is open. Returns whether there were any; the rest is in `task.hold` and `row.holds`.
 */
export async function dropDead(calls: Calls, found: Found): Promise<boolean> {
  const { task, row } = found
  if (!task.hold?.late) return false
  const parts = await partsInFlight(calls, found, row.status === 'claimed')
  const dead = Object.entries(row.holds).filter(([id]) => !parts[id])
  for (const [, part] of dead) task.hold = settleOne(task, part, [])
  row.holds = parts
  return dead.length > 0
}

/** Maximum number of tasks in one batch. */
const lateBatch = 200

/** Releases the reservations of calls whose processes died after their workers had released the tasks. */
export async function dropDeadHolds(context: RemoteContext, calls: Calls): Promise<void> {
  const { sql, queue } = context
  for (let after = ''; ;) {
    const ids = await listLateHolds(sql, after, lateBatch)
    for (const id of ids) {
      const roomMade = await sql.begin(async (tx) => {
        const task = (await lockTasksWithWork(tx, [id])).get(id)
        const row = await findWork(tx, id)
        if (!task || !row) return false
        const steps = (await listSteps(tx, [id])).get(id) ?? []
        await openLedger(tx, [task])
        const before = task.hold
        if (!(await dropDead(calls, { tx, task, row, steps }))) return false
        await noteWork(tx, id, { holds: row.holds })
        const change = { task: { ...task, hold: before }, hold: task.hold }
        await applyChanges(tx, queue, [change])
        return budgetSignals([change]).roomMade
      })
      if (roomMade) context.onBudgets({ waits: false, roomMade })
    }
    if (ids.length < lateBatch) return
    after = ids.at(-1)!
  }
}
