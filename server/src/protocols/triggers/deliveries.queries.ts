import { retention_days } from '#contract/core/limits.ts'
import { notFound } from '#contract/core/problems.ts'
import type { FilteredReason } from '#contract/doors/trigger-sources.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** A delivery in a list. */
export interface DeliveryRow {
  id: string
  status: 'accepted' | 'filtered'
  reason: FilteredReason | null
  task_id: string | null
  thread_id: string | null
  sender_id: string | null
  duplicates: number
  bytes: number
  is_test: boolean
  replay_of: string | null
  created_at: string
}

/** A delivery with its headers and body. */
export interface WholeDelivery extends DeliveryRow {
  headers: Record<string, string>
  body: Buffer
}

const columns = (sql: Sql) => sql.fragment`
  id, status, reason, task_id, thread_id, sender_id, duplicates, octet_length(body) as bytes, is_test, replay_of, created_at`

/** A page of a trigger's deliveries, newest first, and their total number. */
export async function listDeliveries(
  sql: Sql,
  filter: { trigger_id: string; status?: DeliveryRow['status'] | undefined; limit: number; offset: number },
): Promise<{ deliveries: DeliveryRow[]; total: number }> {
  const { fragment } = sql
  const { trigger_id, status, limit, offset } = filter
  const where = status
    ? fragment`trigger_id = ${trigger_id} and status = ${status}`
    : fragment`trigger_id = ${trigger_id}`
  const [count] = await sql.run<{ total: number }>(
    fragment`select count(*) as total from trigger_delivery where ${where}`,
  )
  const deliveries = await sql.run<DeliveryRow>(fragment`
    select ${columns(sql)} from trigger_delivery where ${where} order by id desc limit ${limit} offset ${offset}`)
  return { deliveries, total: count?.total ?? 0 }
}

/** A delivery of a trigger; throws 404 if it does not exist. */
export async function requireDelivery(sql: Sql, { id, trigger_id }: { id: string; trigger_id: string }) {
  const [row] = isId('tdlv', id)
    ? await sql.run<WholeDelivery>(sql.fragment`
        select ${columns(sql)}, headers, body from trigger_delivery where id = ${id} and trigger_id = ${trigger_id}`)
    : []
  if (!row) throw notFound('delivery_not_found', 'delivery', id.slice(0, 100))
  return row
}

export interface NewDelivery {
  id: string
  trigger_id: string
  project_id: number
  status: DeliveryRow['status']
  reason: FilteredReason | null
  task_id: string | null
  thread_id: string | null
  sender_id: string | null
  is_test: boolean
  replay_of: string | null
  headers: Readonly<Record<string, string>>
  body: Buffer
}

export async function insertDelivery(tx: Sql, delivery: NewDelivery): Promise<void> {
  const { id, trigger_id, project_id, status, reason, task_id, thread_id, sender_id } = delivery
  const { is_test, replay_of, headers, body } = delivery
  await tx`
    insert into trigger_delivery (id, trigger_id, project_id, status, reason, task_id, thread_id, sender_id, is_test, replay_of, headers, body)
    values (${id}, ${trigger_id}, ${project_id}, ${status}, ${reason}, ${task_id}, ${thread_id}, ${sender_id}, ${is_test}, ${replay_of},
      ${jsonb(headers)}, ${body})`
}

/** The earlier delivery with the same key. */
export interface EarlierDelivery {
  id: string
  task_id: string | null
}

/**
 * Claims the key of a delivery for so many seconds. Returns undefined if it was free; otherwise counts a duplicate
 * and returns the earlier delivery. Of two concurrent claims, the second waits for the first to commit.
 */
export async function takeKey(
  tx: Sql,
  taken: { trigger_id: string; key: string; delivery_id: string; seconds: number },
): Promise<EarlierDelivery | undefined> {
  const { trigger_id, key, delivery_id, seconds } = taken
  const made = await tx`
    insert into trigger_key as k (trigger_id, key, delivery_id, expires_at)
    values (${trigger_id}, ${key}, ${delivery_id}, now() + make_interval(secs => ${seconds}))
    on conflict (trigger_id, key) do update set delivery_id = excluded.delivery_id, expires_at = excluded.expires_at
      where k.expires_at <= now()
    returning 1 as made`
  if (made.length > 0) return undefined
  const [earlier] = await tx<EarlierDelivery>`
    update trigger_delivery d set duplicates = duplicates + 1 from trigger_key k
    where k.trigger_id = ${trigger_id} and k.key = ${key} and d.id = k.delivery_id returning d.id, d.task_id`
  if (earlier) return earlier
  const [known] = await tx<{ id: string }>`
    select delivery_id as id from trigger_key where trigger_id = ${trigger_id} and key = ${key}`
  return { id: known!.id, task_id: null }
}

/** The thread of a key; undefined if there is none. The thread cannot be deleted until the transaction ends. */
export async function findThread(tx: Sql, trigger_id: string, key: string): Promise<string | undefined> {
  const [row] = await tx<{ thread_id: string }>`
    select k.thread_id from trigger_thread k join thread h on h.id = k.thread_id
    where k.trigger_id = ${trigger_id} and k.key = ${key} for key share of h`
  return row?.thread_id
}

/** Assigns a key to a thread unless it is assigned already. Returns the thread that it is assigned to. */
export async function nameThread(tx: Sql, named: { trigger_id: string; key: string; thread_id: string }) {
  const { trigger_id, key, thread_id } = named
  const [row] = await tx<{ thread_id: string }>`
    insert into trigger_thread (trigger_id, key, thread_id) values (${trigger_id}, ${key}, ${thread_id})
    on conflict (trigger_id, key) do update set key = excluded.key returning thread_id`
  return row!.thread_id
}

/** Rows that one statement removes. */
const batch = 1000

/** Removes deliveries that have outlived their retention, and keys that tell nothing any more; gives how many rows went at most. */
export async function sweepTriggerDeliveries(sql: Sql): Promise<number> {
  const days = retention_days.trigger_deliveries
  const deliveries = await sql`
    delete from trigger_delivery where id in (
      select id from trigger_delivery where id < id_floor('tdlv', now() - make_interval(days => ${days})) order by id limit ${batch})
    returning id`
  const keys = await sql`
    delete from trigger_key where (trigger_id, key) in (
      select trigger_id, key from trigger_key where expires_at < now() order by expires_at limit ${batch})
      and expires_at < now() returning trigger_id`
  return Math.max(deliveries.length, keys.length)
}
