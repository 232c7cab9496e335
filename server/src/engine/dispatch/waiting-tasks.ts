import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import { applyChanges } from '../journal/task-changes.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { Queue } from '../queue/queue.ts'
import type { TaskChange, Wait } from '../task.ts'

/** Waiting tasks that are looked at together. */
export const waitingBatch = 500

/** Sends those of these tasks that still wait for this reason, and gives how many. */
export async function sendWaiting(
  tx: Sql,
  queue: Queue,
  ids: readonly string[],
  reason: Wait['reason'],
): Promise<number> {
  const tasks = await lockTasks(tx, ids)
  const changes = [...tasks.values()]
    // Canceled or expired since it was looked at, or sent by another process.
    .filter(({ status, job_id, wait }) => status === 'waiting' && job_id === null && wait?.reason === reason)
    .map((task): TaskChange => ({ task, job: { kind: 'first', start_after: undefined } }))
  await applyChanges(tx, queue, changes)
  return changes.length
}

/** Where the look after one at these tasks begins; undefined at the end. */
export function nextLook(looked: readonly { id: string }[]): string | undefined {
  return looked.length === waitingBatch ? looked.at(-1)?.id : undefined
}

/** Looks which of the tasks that wait can go on, in the background. */
export interface WaitKeeper {
  look(): void
  stop(): Promise<void>
}

export interface WaitKeeperOptions<Look> {
  log: Logger
  wake: () => void
  /** Looks at the waiting tasks after this identifier, and sends those that can go on. */
  send: (after: string) => Promise<Look>
  /** Called with all looks of one check. */
  looked?: (looks: readonly Look[]) => void
  /** Logged where a check failed. */
  failed: string
}

/** Checks waiting tasks, one check at a time. A request during a check runs one more afterwards. */
export function openWaitKeeper<Look extends { sent: number; next: string | undefined }>({
  log,
  wake,
  send,
  looked,
  failed,
}: WaitKeeperOptions<Look>): WaitKeeper {
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
