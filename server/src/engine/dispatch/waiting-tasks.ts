import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import { applyChanges } from '../journal/task-changes.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { Queue } from '../queue/queue.ts'
import type { TaskChange, Wait } from '../task.ts'

/** Number of waiting tasks in one batch of a check. */
export const waitingBatch = 500

/** Sends those of these tasks that still wait for this reason, and returns their number. */
export async function sendWaiting(
  tx: Sql,
  queue: Queue,
  ids: readonly string[],
  reason: Wait['reason'],
): Promise<number> {
  const tasks = await lockTasks(tx, ids)
  const changes = [...tasks.values()]
    // Excludes tasks that were canceled, expired or sent by another process since they were found.
    .filter(({ status, job_id, wait }) => status === 'waiting' && job_id === null && wait?.reason === reason)
    .map((task): TaskChange => ({ task, job: { kind: 'first', start_after: undefined } }))
  await applyChanges(tx, queue, changes)
  return changes.length
}

/** Start of the batch after these tasks; undefined at the end. */
export function nextLook(looked: readonly { id: string }[]): string | undefined {
  return looked.length === waitingBatch ? looked.at(-1)?.id : undefined
}

/** Checks in the background which waiting tasks can continue. */
export interface WaitingTasks {
  look(): void
  stop(): Promise<void>
}

export interface WaitingTasksOptions<Look> {
  log: Logger
  wake: () => void
  /** Checks a batch of waiting tasks after this id, and sends those that can continue. */
  send: (after: string) => Promise<Look>
  /** Called with the results of all batches of one check. */
  looked?: (looks: readonly Look[]) => void
  /** Log message for a failed check. */
  failed: string
}

/** Checks waiting tasks, one check at a time. A request during a check runs one more check afterwards. */
export function openWaitingTasks<Look extends { sent: number; next: string | undefined }>({
  log,
  wake,
  send,
  looked,
  failed,
}: WaitingTasksOptions<Look>): WaitingTasks {
  let current: Promise<void> | undefined
  let again = false
  let stopped = false

  const lookAll = async (): Promise<void> => {
    const looks: Look[] = []
    for (let after: string | undefined = ''; after !== undefined && !stopped;) {
      const one: Look = await send(after)
      if (one.sent > 0) wake()
      looks.push(one)
      after = one.next
    }
    looked?.(looks)
  }
  const look = (): void => {
    if (stopped) return
    if (current) {
      again = true
      return
    }
    again = false
    current = lookAll()
      .catch((error: unknown) => log.warn({ err: error }, failed))
      .finally(() => {
        current = undefined
        if (again) look()
      })
  }
  return {
    look,
    async stop() {
      stopped = true
      await current
    },
  }
}
