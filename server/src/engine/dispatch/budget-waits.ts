import type { Logger } from 'pino'
import { billionthsOf } from '#contract/models/model-prices.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { overLimit } from '../run/budget-guard.ts'
import { findBudgets, type Spender } from '../budgets/budget-rows.ts'
import { ownBudget, reserve } from '../budgets/budgets.ts'
import { mayWork } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import type { TaskUsage, TaskLimits, BudgetState, Reservation } from '../task.ts'
import { nextLook, openWaitKeeper, sendWaiting, waitingBatch, type WaitKeeper } from './waiting-tasks.ts'

/** A task that waits for a budget. */
export interface Waiter extends Spender {
  id: string
  budget: TaskLimits
  usage: TaskUsage
  hold: Reservation | null
}

/** What one look found: tasks that go on, and where the next look begins; undefined at the end. */
interface Look {
  sent: number
  waiting: number
  next: string | undefined
}

/**
 * Sends tasks that wait for a budget and have room now: as many as fit in together, the oldest first. Whether there is
 * room indeed they find out under the locks, when their call begins.
 */
async function sendRoomy(sql: Sql, queue: Queue, after: string): Promise<Look> {
  return sql.begin(async (tx) => {
    const waiters = await tx.run<Waiter>(tx.fragment`
      select t.id, t.project_id, t.agent_id, p.org_id, t.credential_id, t.budget, t.usage, t.hold
      from task t join agent a on a.id = t.agent_id join project p on p.id = t.project_id
      where t.status = 'waiting' and t.job_id is null and t.wait->>'reason' = 'budget' and t.slot is distinct from 'wanted'
        and t.id > ${after} and ${mayWork(tx)}
      order by t.id limit ${waitingBatch}`)
    const budgets = await findBudgets(tx, waiters)
    const roomy = waiters.filter((waiter) => hasRoom(waiter, budgets.get(waiter) ?? []))
    const sent = await sendWaiting(
      tx,
      queue,
      roomy.map(({ id }) => id),
      'budget',
    )
    return { sent, waiting: waiters.length, next: nextLook(waiters) }
  })
}

/** Whether a task could go on; takes its room from the others that are looked at. */
export function hasRoom({ id, budget, usage, hold }: Waiter, budgets: readonly BudgetState[]): boolean {
  const { call, steps, tool_calls } = hold?.needs ?? { steps: 0, tool_calls: 0 }
  if (overLimit({ budget }, usage, { steps, tool_calls })) return false
  if (!call) return true
  const own = ownBudget(id, budget, usage)
  // What late calls of the task hold is written nowhere else.
  if (own && hold) {
    own.held_tokens += hold.tokens
    own.held_cost += billionthsOf(hold.cost_usd)
  }
  // A call whose cost is not known begins, to fail with a clear word.
  return reserve(own ? [...budgets, own] : budgets, call).outcome !== 'refused'
}

/** Budgets may have room: looks whether tasks wait for them. */
export interface BudgetKeeper extends WaitKeeper {
  /** The same, only where tasks are known to wait: after calls gave back what they did not use. */
  roomMade(): void
  /** A task of this process waits from now on. */
  waits(): void
}

/** Checks the tasks that wait for budgets. */
export function openBudgetKeeper({
  sql,
  queue,
  log,
  wake,
}: {
  sql: Sql
  queue: Queue
  log: Logger
  wake: () => void
}): BudgetKeeper {
  let someWait = true
  const keeper = openWaitKeeper({
    log,
    wake,
    send: (after) => sendRoomy(sql, queue, after),
    looked(looks) {
      someWait = looks.some(({ waiting }) => waiting > 0)
    },
    failed: 'tasks wait for budgets that may have room; looking again',
  })
  return {
    ...keeper,
    roomMade() {
      if (someWait) keeper.look()
    },
    waits() {
      someWait = true
    },
  }
}
