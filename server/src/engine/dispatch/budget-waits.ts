import type { Logger } from 'pino'
import { billionthsOf } from '#contract/models/model-prices.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { overLimit } from '../run/budget-guard.ts'
import { findBudgets, type Spender } from '../budgets/budget-rows.ts'
import { ownBudget, reserve } from '../budgets/budgets.ts'
import { mayWork } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import type { TaskUsage, TaskLimits, BudgetState, Reservation } from '../task.ts'
import { nextLook, openWaitingTasks, sendWaiting, waitingBatch, type WaitingTasks } from './waiting-tasks.ts'

/** A task that waits for a budget. */
export interface Waiter extends Spender {
  id: string
  budget: TaskLimits
  usage: TaskUsage
  hold: Reservation | null
}

/**
 * Result of one batch of a check: the number of tasks sent and found, and the start of the next batch; undefined at the
 * end.
 */
interface Look {
  sent: number
  waiting: number
  next: string | undefined
}

/**
 * Sends tasks that wait for a budget and have room now: as many as fit together, the oldest first. Their calls check
 * again under the budgets' locks.
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

/** Whether a task could continue. Its needs then count against the budgets for the tasks that are checked after it. */
export function hasRoom({ id, budget, usage, hold }: Waiter, budgets: readonly BudgetState[]): boolean {
  const { call, steps, tool_calls } = hold?.needs ?? { steps: 0, tool_calls: 0 }
  if (overLimit({ budget }, usage, { steps, tool_calls })) return false
  if (!call) return true
  const own = ownBudget(id, budget, usage)
  // Calls that an earlier worker left in flight are reserved only here, not in the budgets' rows.
  if (own && hold) {
    own.held_tokens += hold.tokens
    own.held_cost += billionthsOf(hold.cost_usd)
  }
  // A call of unknown cost has room: it starts, and fails with a clear error.
  return reserve(own ? [...budgets, own] : budgets, call).outcome !== 'refused'
}

/** Checks tasks that wait for budgets. */
export interface BudgetWaits extends WaitingTasks {
  /** Budgets have room again: checks if tasks are known to wait. */
  roomMade(): void
  /** A task of this process waits from now on. */
  waits(): void
}

/** Opens the check of tasks that wait for budgets. */
export function openBudgetWaits({
  sql,
  queue,
  log,
  wake,
}: {
  sql: Sql
  queue: Queue
  log: Logger
  wake: () => void
}): BudgetWaits {
  let someWait = true
  const waiting = openWaitingTasks({
    log,
    wake,
    send: (after) => sendRoomy(sql, queue, after),
    looked(looks) {
      someWait = looks.some(({ waiting }) => waiting > 0)
    },
    failed: 'tasks that wait for budgets could not be checked; retrying',
  })
  return {
    ...waiting,
    roomMade() {
      if (someWait) waiting.look()
    },
    waits() {
      someWait = true
    },
  }
}
