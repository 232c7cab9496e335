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

/** How long the answer to an Idempotency-Key is stored (decision D98). */
export const idempotencyRetention_hours = 24

/** Maximum number of requests that share a transaction, and of such transactions at a time. */
const groupMax = 64
const concurrency = 2

/** A JSON answer with its status, as stored and replayed. */
export interface StoredAnswer {
  status: number
  body: unknown
}

/** What makes a request the same as an earlier one. */
export interface IdempotentRequest {
  subject: string
  key: string
  method: string
  /** With the query string: a request with another `wait` is another request. */
  url: string
  body: Buffer | undefined
}

/**
 * The checked header: 1 to 255 printable ASCII characters; undefined without the header.
 * @throws `validation_error`
 */
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

/** What is stored for a request's key: its answer, the problem of a conflict, or nothing. */
type Known = StoredAnswer | Problem | undefined

/** Where answers are stored, and what encrypts them. */
interface Store {
  sql: Sql
  secrets: Secrets
}

/**
 * Runs `work` once for its Idempotency-Key and stores the answer in the same transaction, so a crash leaves both or
 * neither. A repeated request gets the stored answer. If `work` throws a problem with a 4xx status, the work is rolled
 * back and the problem is stored; 429 and 5xx are not stored (decision D98).
 * @throws `idempotency_key_reused` for another payload, `request_in_progress` while the first request runs
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

/** One of several requests in a shared transaction: its work, and how its problems are rendered. */
export interface Keyed<Item> {
  request: IdempotentRequest
  item: Item
  renderProblem: (problem: Problem) => StoredAnswer
}

/**
 * Like `idempotently`, for concurrent requests: one transaction does their work and stores their answers. `work` returns,
 * in the order of the items, an answer or a problem. Nothing rolls back a single item, so `work` must not write anything
 * for an item that it refuses.
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

/** Whether a problem is stored, so that a repeated request gets it again even if its reason is gone. */
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
 * Locks the keys of requests until the transaction ends, and then reads their stored answers: in this order, it sees what
 * the previous holder of the lock stored.
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
    // A transaction gets a lock that it already holds, so equal keys in one batch are found by comparison.
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
 * Removes erased tasks from stored answers: a repeated request gets an error that the task was erased, and creates none.
 * The caller's transaction locks the tasks. An answer is stored by the transaction that it describes, so it is found by
 * the same `created_at`.
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

/** A value without its parts about the tasks: the same value if it has none, undefined if it is about one of them. */
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

/** Deletes up to 1000 expired answers, and returns their number. */
export async function sweepIdempotency(sql: Sql): Promise<number> {
  // The age is checked again on the locked row, because its key may have been used again since the subquery read it.
  const old = sql.fragment`created_at <= now() - make_interval(hours => ${idempotencyRetention_hours})`
  const deleted = await sql.run(sql.fragment`
    delete from idempotency
    where (subject, key) in (select subject, key from idempotency where ${old} limit 1000) and ${old}
    returning key`)
  return deleted.length
}
