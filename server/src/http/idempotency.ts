import { createHash } from 'node:crypto'
import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { invalid, Problem } from '#contract/core/problems.ts'
import type { Sql } from '../platform/postgres/database.ts'
import { newId } from '../platform/ids.ts'
import { Batcher, batchOrEach } from '../platform/batcher.ts'
import { renderProblem, type ErrorAnswer } from './error-formats.ts'
import type { Secrets } from '../platform/crypto/secrets.ts'
import { secretLabels } from '../platform/crypto/secret-labels.ts'

/** How long an answer is kept for its Idempotency-Key (decision D98). */
export const idempotencyRetention_hours = 24

/** How many requests share a transaction at most, and how many such transactions there are at a time. */
const groupMax = 64
const concurrency = 2

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

/** What there is already for a request's key: its answer, or why it has none. */
type Known = StoredAnswer | Problem | undefined

/** Where answers are kept, and what encrypts them. */
interface Store {
  sql: Sql
  secrets: Secrets
}

/**
 * Does `work` once for its Idempotency-Key and keeps the answer in the transaction of the work itself: after a crash
 * either both are there or neither. The same request again gets the kept answer; another payload is 422, one still
 * running 409. A problem of status 4xx is kept too, its work rolled back; 429 and 5xx are not (decision D98).
 */
export async function idempotently(
  { sql, secrets }: Store,
  request: IdempotentRequest,
  work: (tx: Sql) => Promise<StoredAnswer>,
  renderProblem: (problem: Problem) => StoredAnswer,
): Promise<StoredAnswer & { replayed: boolean }> {
  return sql.begin(async (tx) => {
    const [known] = await lockAndFind(tx, secrets, [request])
    if (known instanceof Problem) throw known
    if (known) return { ...known, replayed: true }
    const answer = await tx.begin(work).catch((error: unknown) => {
      if (!isStored(error)) throw error
      return renderProblem(error)
    })
    await keep(tx, secrets, [{ request, answer }])
    return { ...answer, replayed: false }
  })
}

/** A request of several that are done together: what it wants done, and how it tells a problem. */
export interface Keyed<Item> {
  request: IdempotentRequest
  item: Item
  renderProblem: (problem: Problem) => StoredAnswer
}

/**
 * Does `idempotently` for requests that come at the same time: one transaction does the work of all and keeps their answers. `work`
 * gives of each, in their order, its answer or the problem that it has; it undoes nothing, so it does nothing for one that it refuses.
 */
export function idempotentBatch<Item>(
  { sql, secrets, waitMax_ms }: Store & { waitMax_ms: number },
  work: (tx: Sql, items: readonly Item[]) => Promise<readonly (StoredAnswer | Problem)[]>,
): (keyed: Keyed<Item>) => Promise<StoredAnswer & { replayed: boolean }> {
  const groups = new Batcher<Keyed<Item>, StoredAnswer & { replayed: boolean }>(
    (all) =>
      batchOrEach(all, (some) =>
        sql.begin(async (tx) => {
          const known = await lockAndFind(
            tx,
            secrets,
            some.map(({ request }) => request),
          )
          const fresh = some.filter((_, i) => known[i] === undefined)
          const results =
            fresh.length === 0
              ? []
              : await work(
                  tx,
                  fresh.map(({ item }) => item),
                )
          const answers = new Map(fresh.map((keyed, i) => [keyed, answerOf(keyed, results[i]!)]))
          await keep(
            tx,
            secrets,
            [...answers].flatMap(([{ request }, answer]) => (answer instanceof Problem ? [] : [{ request, answer }])),
          )
          return some.map((keyed, i) => {
            const answer = known[i] ?? answers.get(keyed)!
            return answer instanceof Problem ? answer : { ...answer, replayed: known[i] !== undefined }
          })
        }, 'forceIndexPlan'),
      ),
    { concurrency, groupMax, waitMax_ms },
  )
  return (keyed) => groups.submit(keyed)
}

function answerOf<Item>({ renderProblem }: Keyed<Item>, result: StoredAnswer | Problem): StoredAnswer | Problem {
  return isStored(result) ? renderProblem(result) : result
}

/** Whether a request that is repeated is refused for the same reason again, whatever has changed since. */
export function isStored(error: unknown): error is Problem {
  return error instanceof Problem && error.status < 500 && error.status !== 429
}

function nameOf({ subject, key }: IdempotentRequest): string {
  return `${subject} ${key}`
}

function hashOf({ method, url, body }: IdempotentRequest): Buffer {
  return createHash('sha256')
    .update(`${method} ${url}\n`)
    .update(body ?? '')
    .digest()
}

/**
 * Locks requests' keys until the transaction ends, and then looks for what was kept of each. In this order: what another
 * transaction kept before it let go of the lock is seen.
 */
async function lockAndFind(tx: Sql, secrets: Secrets, requests: readonly IdempotentRequest[]): Promise<Known[]> {
  const names = requests.map(nameOf)
  const locks = await tx<{ is_free: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(name, 98)) as is_free
    from unnest(${names}::text[]) with ordinality as n(name, nth) order by nth`
  const stored = await tx<{ nth: number; hash: Buffer; status: number; body: Buffer }>`
    select a.nth::int, i.hash, i.status, i.body
    from unnest(${requests.map(({ subject }) => subject)}::text[], ${requests.map(({ key }) => key)}::text[])
      with ordinality as a(subject, key, nth)
    join idempotency i on i.subject = a.subject and i.key = a.key
      and i.created_at > now() - make_interval(hours => ${idempotencyRetention_hours})`
  const byPlace = new Map(stored.map((row) => [row.nth - 1, row]))
  return requests.map((request, i) => {
    const conflict = { conflicting_field: 'Idempotency-Key', conflicting_value: request.key }
    // A transaction that already has a lock gets it again, so its own requests are distinguished here.
    if (!locks[i]!.is_free || names.indexOf(names[i]!) !== i)
      return new Problem('request_in_progress', conflict, { headers: { 'retry-after': '1' } })
    const row = byPlace.get(i)
    if (row && !row.hash.equals(hashOf(request))) return new Problem('idempotency_key_reused', conflict)
    return (
      row && {
        status: row.status,
        body: JSON.parse(secrets.decrypt(secretLabels.idempotent_answer, row.body, names[i]!)),
      }
    )
  })
}

async function keep(
  tx: Sql,
  secrets: Secrets,
  answered: readonly { request: IdempotentRequest; answer: StoredAnswer }[],
): Promise<void> {
  if (answered.length === 0) return
  const requests = answered.map(({ request }) => request)
  const bodies = answered.map(({ request, answer }) =>
    secrets.encrypt(secretLabels.idempotent_answer, JSON.stringify(answer.body), nameOf(request)),
  )
  await tx`
    insert into idempotency (subject, key, hash, status, body)
    select * from unnest(${requests.map(({ subject }) => subject)}::text[], ${requests.map(({ key }) => key)}::text[],
      ${requests.map(hashOf)}::bytea[], ${answered.map(({ answer }) => answer.status)}::int[], ${bodies}::bytea[])
    on conflict (subject, key) do update set hash = excluded.hash, status = excluded.status, body = excluded.body, created_at = now()`
}

/**
 * Takes what kept answers say of tasks that are erased in this transaction, which locks them: the same request again gets an error that
 * the task is gone, and creates none. Answers are kept in the transaction of what they tell of, so the same moment finds them.
 */
export async function forgetAnswers(tx: Sql, secrets: Secrets, task_ids: readonly string[]): Promise<void> {
  const ids = [...task_ids]
  const rows = await tx<{ subject: string; key: string; status: number; body: Buffer }>`
    select subject, key, status, body from idempotency where created_at > now() - make_interval(hours => ${idempotencyRetention_hours})
      and created_at in (
        select created_at from task where id = any(${ids})
        union select created_at from task_message where task_id = any(${ids})
        union select resolved_at from approval where task_id = any(${ids}) and resolved_at is not null)
    for update`
  for (const { subject, key, status, body } of rows) {
    const name = `${subject} ${key}`
    const decrypted = JSON.parse(secrets.decrypt(secretLabels.idempotent_answer, body, name)) as unknown
    const left = withoutTasks(decrypted, new Set(ids))
    if (left === decrypted) continue
    const answer = left === undefined ? erasedAnswer() : { status, body: left }
    const kept = secrets.encrypt(secretLabels.idempotent_answer, JSON.stringify(answer.body), name)
    await tx`update idempotency set status = ${answer.status}, body = ${kept} where subject = ${subject} and key = ${key}`
  }
}

/** An answer without what it says of tasks; the same value where it says nothing, undefined where it is about one of them alone. */
function withoutTasks(value: unknown, ids: ReadonlySet<string>): unknown {
  if (Array.isArray(value)) {
    const left = value.map((one) => withoutTasks(one, ids) ?? { erased: true })
    return left.some((one, i) => one !== value[i]) ? left : value
  }
  if (!isObject(value)) return value
  if ([value['id'], value['task_id']].some((id) => typeof id === 'string' && ids.has(id))) return undefined
  const entries = Object.entries(value).map(
    ([name, one]) => [name, withoutTasks(one, ids) ?? { erased: true }] as const,
  )
  return entries.some(([name, one]) => one !== value[name]) ? Object.fromEntries(entries) : value
}

function erasedAnswer(): ErrorAnswer {
  return renderProblem(new Problem('task_not_found', null, { message: 'The task was erased.' }), 'agents', newId('req'))
}

/** Removes answers whose time is over, in batches; gives how many went. */
export async function sweepIdempotency(sql: Sql): Promise<number> {
  // The age is asked again of the row itself: it may be in use anew since it was found.
  const old = sql.fragment`created_at <= now() - make_interval(hours => ${idempotencyRetention_hours})`
  const deleted = await sql.run(sql.fragment`
    delete from idempotency
    where (subject, key) in (select subject, key from idempotency where ${old} limit 1000) and ${old}
    returning key`)
  return deleted.length
}
