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
  record: RequestRecord
  response_id: string
  task_id: string
}

/** What a record is found by. */
export interface RequestRecord {
  credential_id: string
  hash: Buffer
  id: number
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
  const isEqual = fragment`credential_id = ${credential_id} and hash = ${hash}`
  const [row] = await tx.run<{ id: number; response_id: string; task_id: string }>(fragment`
    update door_request set state = 'open', process_id = ${process_id} where ${isEqual} and id = (
      select id from door_request r
      where ${isEqual} and exists (select from task t where t.id = r.task_id)
        and created_at > now() - make_interval(mins => ${openaiBounds.retry_minutes})
        and ${again ? fragment`(state = 'answered' or ${isClaimable})` : fragment`state <> 'answered' and ${isClaimable}`}
      order by state = 'answered', id limit 1 for update skip locked)
    returning id, response_id, task_id`)
  return row && { record: { credential_id, hash, id: row.id }, response_id: row.response_id, task_id: row.task_id }
}

/** Records a request with the segment that it makes, in the same transaction. */
export async function recordRequest(
  tx: Sql,
  made: { credential_id: string; hash: Buffer; response_id: string; task_id: string; process_id: string },
): Promise<RequestRecord> {
  const { credential_id, hash, response_id, task_id, process_id } = made
  const [row] = await tx<{ id: number }>`
    insert into door_request (credential_id, hash, response_id, task_id, state, process_id)
    values (${credential_id}, ${hash}, ${response_id}, ${task_id}, 'open', ${process_id}) returning id`
  return { credential_id, hash, id: row!.id }
}

/** How the answer of a request ended: written to its end, or not. */
export interface RequestEnd extends RequestRecord {
  state: 'answered' | 'broken'
}

/** Notes how the answers of requests ended. */
export async function endRequests(sql: Sql, ends: readonly RequestEnd[]): Promise<void> {
  const of = <K extends keyof RequestEnd>(name: K): RequestEnd[K][] => ends.map((end) => end[name])
  await sql`
    update door_request r set state = e.state
    from unnest(${of('credential_id')}::text[], ${of('hash')}::bytea[], ${of('id')}::bigint[],
      ${of('state')}::text[]) as e(credential_id, hash, id, state)
    where r.credential_id = e.credential_id and r.hash = e.hash and r.id = e.id`
}

/** Removes records that no request may claim any more. It reads the whole table, so it takes them all at once. */
export async function sweepDoorRequests(sql: Sql): Promise<number> {
  await sql`delete from door_request where created_at < now() - make_interval(mins => ${openaiBounds.retry_minutes * 2})`
  return 0
}
