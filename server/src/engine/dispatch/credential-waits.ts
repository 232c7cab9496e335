import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import { mayWork } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { nextLook, openWaitingTasks, sendWaiting, waitingBatch, type WaitingTasks } from './waiting-tasks.ts'

/**
 * Sends tasks whose credentials are all connected or deleted; their calls are then tried. Returns their number, and the
 * start of the next batch; undefined at the end.
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
      order by t.id limit ${waitingBatch}`)
    const sent = await sendWaiting(
      tx,
      queue,
      found.map(({ id }) => id),
      'credential',
    )
    return { sent, next: nextLook(found) }
  })
}

/**
 * Checks tasks that wait for credentials: after a credential was connected, changed or deleted, or a task began to
 * wait.
 */
export type CredentialWaits = WaitingTasks

/** Opens the check of tasks that wait for credentials. */
export function openCredentialWaits({
  sql,
  queue,
  log,
  wake,
}: {
  sql: Sql
  queue: Queue
  log: Logger
  wake: () => void
}): CredentialWaits {
  return openWaitingTasks({
    log,
    wake,
    send: (after) => sendConnected(sql, queue, after),
    failed: 'tasks that wait for credentials could not be checked; retrying',
  })
}
