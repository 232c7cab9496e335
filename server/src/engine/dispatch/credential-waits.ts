import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import { mayWork } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { applyChanges } from '../journal/task-changes.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { TaskChange } from '../task.ts'

/** Waiting tasks that are looked at together. */
const batch = 500

/**
 * Sends tasks that wait for credentials all of which are connected by now, or gone: their calls are tried then. Gives how many,
 * and where the next look begins; undefined at the end.
 */
async function sendConnected(
  sql: Sql,
  queue: Queue,
  after: string,
): Promise<{ sent: number; next: string | undefined }> {
  return sql.begin(async (tx) => {
    const found = await tx.run<{ id: string }>(tx.fragment`
      select t.id from task t join agent a on a.id = t.agent_id
      where t.status = 'waiting' and t.job_id is null and t.wait->>'reason' = 'credential' and t.slot is distinct from 'wanted'
        and t.id > ${after} and ${mayWork(tx)}
        and not exists (
          select from jsonb_array_elements_text(t.wait->'credential_ids') as w(credential_id)
          join credential_oauth o on o.credential_id = w.credential_id where o.status <> 'connected')
      order by t.id limit ${batch}`)
    const tasks = await lockTasks(
      tx,
      found.map(({ id }) => id),
    )
    const changes = [...tasks.values()]
      // Canceled or expired since it was looked at, or sent by another process.
      .filter(({ status, job_id, wait }) => status === 'waiting' && job_id === null && wait?.reason === 'credential')
      .map((task): TaskChange => ({ task, job: { kind: 'first', start_after: undefined } }))
    await applyChanges(tx, queue, changes)
    return { sent: changes.length, next: found.length === batch ? found.at(-1)?.id : undefined }
  })
}

export interface CredentialKeeper {
  /** A credential was connected, changed or removed, or a task began to wait: looks which can go on, in the background. */
  look(): void
  stop(): Promise<void>
}

/** Checks the tasks that wait for credentials, one check at a time. A request during a check runs one more afterwards. */
export function openCredentialKeeper({
  sql,
  queue,
  log,
  wake,
}: {
  sql: Sql
  queue: Queue
  log: Logger
  wake: () => void
}): CredentialKeeper {
  let current: Promise<void> | undefined
  let again = false
  let stopped = false

  const lookAll = async (): Promise<void> => {
    for (let after: string | undefined = ''; after !== undefined && !stopped;) {
      const { sent, next }: { sent: number; next: string | undefined } = await sendConnected(sql, queue, after)
      if (sent > 0) wake()
      after = next
    }
  }
  const look = (): void => {
    if (stopped) return
    if (current) {
      again = true
      return
    }
    again = false
    current = lookAll()
      .catch((error: unknown) =>
        log.warn({ err: error }, 'tasks wait for credentials that may be connected; looking again'),
      )
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
