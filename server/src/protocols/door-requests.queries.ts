import { createHash } from 'node:crypto'
import { openaiBounds } from '#contract/doors/openai.ts'
import { holdsPresenceLock } from '../engine/maintenance/leases.ts'
import type { AskedRequest } from '../engine/commands/repeated-requests.queries.ts'
import type { Sql } from '../platform/postgres/database.ts'

/**
 * Detection of retries: clients repeat a request without a key after their connection breaks. Each request is
 * recorded with the segment that it created; an equal request may claim that segment once instead of creating
 * another.
 */
export interface RecordedRequest {
  record: RequestRecord
  response_id: string
  task_id: string
}

/** Key of a record. */
export interface RequestRecord {
  credential_id: string
  hash: Buffer
  id: number
}

/** Hash of method, path and body, by which equal requests are found. */
export function hashOfRequest(method: string, path: string, body: Buffer | undefined): Buffer {
  return createHash('sha256')
    .update(`${method} ${path}\n`)
    .update(body ?? '')
    .digest()
}

/**
 * Claims the segment of an earlier equal request whose response was not written completely, or whose process has
 * ended. With `again`, because the client says that it retries, also that of an answered request, with lower
 * priority. Concurrent claims get different records. Returns undefined if there is none.
 */
export async function claimRequest(
  tx: Sql,
  asked: AskedRequest & { process_id: string },
): Promise<RecordedRequest | undefined> {
  const { credential_id, hash, again, process_id } = asked
  const { fragment } = tx
  // A client that polls leaves many answered records, so they are excluded before the check whether a process lives.
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

/** Records a request in the transaction that creates its segment. */
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

/** Whether the response of a request was written completely. */
export interface RequestEnd extends RequestRecord {
  state: 'answered' | 'broken'
}

/** Stores whether the responses of requests were written completely. */
export async function endRequests(sql: Sql, ends: readonly RequestEnd[]): Promise<void> {
  const of = <K extends keyof RequestEnd>(name: K): RequestEnd[K][] => ends.map((end) => end[name])
  await sql`
    update door_request r set state = e.state
    from unnest(${of('credential_id')}::text[], ${of('hash')}::bytea[], ${of('id')}::bigint[],
      ${of('state')}::text[]) as e(credential_id, hash, id, state)
    where r.credential_id = e.credential_id and r.hash = e.hash and r.id = e.id`
}

/**
 * Removes records that can no longer be claimed. It scans the whole table, so it removes all of them with one
 * statement.
 */
export async function sweepDoorRequests(sql: Sql): Promise<number> {
  await sql`delete from door_request where created_at < now() - make_interval(mins => ${openaiBounds.retry_minutes * 2})`
  return 0
}
