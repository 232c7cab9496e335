import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import { overLimit } from '../run/budget-guard.ts'
import { findBudgets, type Spender } from '../budgets/budget-rows.ts'
import { ownBudget, reserve } from '../budgets/budgets.ts'
import { mayWork } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { applyChanges } from '../journal/task-changes.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { TaskUsage, TaskChange, TaskLimits, BudgetState, Reservation } from '../task.ts'

/** Waiting tasks that are looked at together. */
const batch = 500

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
      order by t.id limit ${batch}`)
    const budgets = await findBudgets(tx, waiters)
    const roomy = waiters.filter((waiter) => hasRoom(waiter, budgets.get(waiter) ?? []))
    const tasks = await lockTasks(
      tx,
      roomy.map(({ id }) => id),
    )
    const changes = [...tasks.values()]
      // Canceled or expired since it was looked at, or sent by another process.
      .filter(({ status, job_id, wait }) => status === 'waiting' && job_id === null && wait?.reason === 'budget')
      .map((task): TaskChange => ({ task, job: { kind: 'first', start_after: undefined } }))
    await applyChanges(tx, queue, changes)
    const next = waiters.length === batch ? waiters.at(-1)?.id : undefined
    return { sent: changes.length, waiting: waiters.length, next }
  })
}

/** Whether a task could go on; takes its room from the others that are looked at. */
export function hasRoom({ id, budget, usage, hold }: Waiter, budgets: readonly BudgetState[]): boolean {
  const { call, steps, tool_calls } = hold?.needs ?? { steps: 0, tool_calls: 0 }
  if (overLimit({ budget }, usage, { steps, tool_calls })) return false
  if (!call) return true
  const own = ownBudget(id, budget, usage)
  // A call whose cost is not known begins, to fail with a clear word.
  return reserve(own ? [...budgets, own] : budgets, call).outcome !== 'refused'
}

export interface BudgetKeeper {
  /** Budgets may have room: looks whether tasks wait for them, in the background. */
  look(): void
  /** The same, only where tasks are known to wait: after calls gave back what they did not use. */
  roomMade(): void
  /** A task of this process waits from now on. */
  waits(): void
  stop(): Promise<void>
}

/** Checks the tasks that wait for budgets, one check at a time. A request during a check runs one more afterwards. */
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
  let current: Promise<void> | undefined
  let again = false
  let stopped = false
  let someWait = true

  const lookAll = async (): Promise<void> => {
    let waiting = 0
    for (let after: string | undefined = ''; after !== undefined && !stopped;) {
      const look: Look = await sendRoomy(sql, queue, after)
      if (look.sent > 0) wake()
      waiting += look.waiting
      after = look.next
    }
    someWait = waiting > 0
  }
  const look = (): void => {
    if (stopped) return
    if (current) {
      again = true
      return
    }
    again = false
    current = lookAll()
      .catch((error: unknown) => log.warn({ err: error }, 'tasks wait for budgets that may have room; looking again'))
      .finally(() => {
        current = undefined
        if (again) look()
      })
  }
  return {
    look,
    roomMade() {
      if (someWait) look()
    },
    waits() {
      someWait = true
    },
    async stop() {
      stopped = true
      await current
    },
  }
}
