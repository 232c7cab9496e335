import { createHash } from 'node:crypto'
import { bounds } from '#contract/limits.ts'
import { invalid, Problem } from '#contract/problems.ts'
import type { Sql } from '../platform/database.ts'
import type { Secrets } from '../platform/secrets.ts'

/** How long an answer is kept for its Idempotency-Key (decision D98). */
export const idempotencyRetention_hours = 24

/** Label of the key that encrypts kept answers. */
const label = 'idempotent-answer'

/** A JSON answer with its status: what is kept, and given again. */
export interface StoredAnswer {
  status: number
  body: unknown
}

/** What identifies a request: the credential, the key it sent, and everything it asked for. */
export interface IdempotentRequest {
  subject: string
  key: string
  method: string
  /** With the query string: another wait is another request. */
  url: string
  body: Buffer | undefined
}

/** Checks the header: 1 to 255 printable ASCII characters; undefined where there is none. */
export function idempotencyKey(header: string | string[] | undefined): string | undefined {
  if (header === undefined) return undefined
  if (typeof header === 'string' && header.length <= bounds.idempotency_key && /^[\x20-\x7e]+$/.test(header))
    return header
  throw invalid({
    field: 'Idempotency-Key',
    message: `must be 1 to ${bounds.idempotency_key} printable ASCII characters`,
    code: 'invalid_format',
  })
}

/**
 * Does `work` once for its Idempotency-Key and keeps the answer in the transaction of the work itself: after a crash
 * either both are there or neither. The same request again gets the kept answer; another payload is 422, one still
 * running 409. A problem of status 4xx is kept too, its work rolled back; 429 and 5xx are not (decision D98).
 */
export async function idempotently(
  { sql, secrets }: { sql: Sql; secrets: Secrets },
  request: IdempotentRequest,
  work: (tx: Sql) => Promise<StoredAnswer>,
  renderProblem: (problem: Problem) => StoredAnswer,
): Promise<StoredAnswer & { replayed: boolean }> {
  const { subject, key } = request
  const hash = createHash('sha256')
    .update(`${request.method} ${request.url}\n`)
    .update(request.body ?? '')
    .digest()
  return sql.begin(async (tx) => {
    const [lock] = await tx<{
      free: boolean
    }>`select pg_try_advisory_xact_lock(hashtextextended(${`${subject} ${key}`}, 98)) as free`
    if (!lock?.free)
      throw new Problem('request_in_progress', { conflicting_field: 'Idempotency-Key', conflicting_value: key })
    const [kept] = await tx<{ hash: Buffer; status: number; body: Buffer }>`
      select hash, status, body from idempotency
      where subject = ${subject} and key = ${key} and created_at > now() - make_interval(hours => ${idempotencyRetention_hours})`
    if (kept && !kept.hash.equals(hash))
      throw new Problem('idempotency_key_reused', { conflicting_field: 'Idempotency-Key', conflicting_value: key })
    if (kept)
      return {
        status: kept.status,
        body: JSON.parse(secrets.decrypt(label, kept.body, `${subject} ${key}`)),
        replayed: true,
      }

    const answer = await tx.begin(work).catch((error: unknown) => {
      if (!(error instanceof Problem) || error.status >= 500 || error.status === 429) throw error
      return renderProblem(error)
    })
    const body = secrets.encrypt(label, JSON.stringify(answer.body), `${subject} ${key}`)
    await tx`
      insert into idempotency (subject, key, hash, status, body) values (${subject}, ${key}, ${hash}, ${answer.status}, ${body})
      on conflict (subject, key) do update set hash = excluded.hash, status = excluded.status, body = excluded.body, created_at = now()`
    return { ...answer, replayed: false }
  })
}

/** Removes answers whose time is over, in batches; gives how many went. */
export async function sweepIdempotency(sql: Sql): Promise<number> {
  // The age is asked again of the row itself: it may be in use anew since it was found.
  const old = sql.fragment`created_at <= now() - make_interval(hours => ${idempotencyRetention_hours})`
  const gone = await sql.run(sql.fragment`
    delete from idempotency
    where (subject, key) in (select subject, key from idempotency where ${old} limit 1000) and ${old}
    returning key`)
  return gone.length
}
