import { createHash } from 'node:crypto'
import { openaiBounds } from '#contract/doors/openai.ts'
import { holdsPresenceLock } from '../engine/maintenance/leases.ts'
import type { AskedRequest } from '../engine/commands/repeated-requests.queries.ts'
import type { Sql } from '../platform/postgres/database.ts'

/**
 * Folded retries: clients repeat a request without a key when their connection breaks. A request is recorded with the
 * segment that it made; an equal one may claim that segment once instead of making another.
 */
export interface RecordedRequest {
  id: number
  response_id: string
  task_id: string
}

/** A request as it identifies itself: everything that it asked for. */
export function hashOfRequest(method: string, path: string, body: Buffer | undefined): Buffer {
  return createHash('sha256')
    .update(`${method} ${path}\n`)
    .update(body ?? '')
    .digest()
}

/**
 * Claims the segment of an earlier equal request whose connection ended before its answer was written to the end, or whose
 * process is gone; with `again`, the client's own word that it repeats, also of one that was answered, those last. Of two
 * claims at once each gets another record. Undefined where there is none.
 */
export async function claimRequest(
  tx: Sql,
  asked: AskedRequest & { process_id: string },
): Promise<RecordedRequest | undefined> {
  const { credential_id, hash, again, process_id } = asked
  const { fragment } = tx
  // Those that were answered are many where a client asks the same every second; this process knows that it lives.
  const isClaimable = fragment`(state = 'broken' or (state = 'open' and process_id <> ${process_id} and not ${holdsPresenceLock(tx, fragment`r.process_id`)}))`
  const [row] = await tx.run<RecordedRequest>(tx.fragment`
    update door_request set state = 'open', process_id = ${process_id} where id = (
      select id from door_request r
      where credential_id = ${credential_id} and hash = ${hash}
        and created_at > now() - make_interval(mins => ${openaiBounds.retry_minutes})
        and ${again ? fragment`(state = 'answered' or ${isClaimable})` : fragment`state <> 'answered' and ${isClaimable}`}
      order by state = 'answered', id limit 1 for update skip locked)
    returning id, response_id, task_id`)
  return row
}

/** Records a request with the segment that it makes, in the same transaction. */
export async function recordRequest(
  tx: Sql,
  made: { credential_id: string; hash: Buffer; response_id: string; task_id: string; process_id: string },
): Promise<number> {
  const { credential_id, hash, response_id, task_id, process_id } = made
  const [row] = await tx<{ id: number }>`
    insert into door_request (credential_id, hash, response_id, task_id, state, process_id)
    values (${credential_id}, ${hash}, ${response_id}, ${task_id}, 'open', ${process_id}) returning id`
  return row!.id
}

/** How the answer of a request ended: written to its end, or not. */
export interface RequestEnd {
  id: number
  state: 'answered' | 'broken'
}

/** Notes how the answers of requests ended. */
export async function endRequests(sql: Sql, ends: readonly RequestEnd[]): Promise<void> {
  await sql`
    update door_request r set state = e.state
    from unnest(${ends.map(({ id }) => id)}::bigint[], ${ends.map(({ state }) => state)}::text[]) as e(id, state) where r.id = e.id`
}

/** Removes records that no request may claim any more, a batch; gives how many went. */
export async function sweepDoorRequests(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from door_request where id in (
      select id from door_request where created_at < now() - make_interval(mins => ${openaiBounds.retry_minutes * 2}) limit 1000)
    returning id`
  return deleted.length
}
