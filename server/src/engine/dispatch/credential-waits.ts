import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import { mayWork } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { nextLook, openWaitKeeper, sendWaiting, waitingBatch, type WaitKeeper } from './waiting-tasks.ts'

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

/** A credential was connected, changed or removed, or a task began to wait: looks which can go on. */
export type CredentialKeeper = WaitKeeper

/** Checks the tasks that wait for credentials. */
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
  return openWaitKeeper({
    log,
    wake,
    send: (after) => sendConnected(sql, queue, after),
    failed: 'tasks wait for credentials that may be connected; looking again',
  })
}
