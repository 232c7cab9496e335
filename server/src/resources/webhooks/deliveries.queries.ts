import type { OutboxEventName } from '#contract/events/events.ts'
import { notFound } from '#contract/core/problems.ts'
import { deliveryBody, type StoredEvent } from '../../events/webhooks/delivery/sign.ts'
import { makeDue, redeliverNow } from '../../events/webhooks/endpoint-lease-rows.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** A delivery in a list. */
export interface DeliveryRow {
  id: string
  event_id: string
  event: OutboxEventName
  status: 'pending' | 'delivered' | 'failed'
  failure: 'attempts_exhausted' | 'webhook_disabled' | 'gone' | null
  /** Number of attempts so far. */
  attempts: number
  is_redelivery: boolean
  is_test: boolean
  last_response_status: number | null
  next_attempt_at: string | null
  created_at: string
  finished_at: string | null
}

const columns = ({ fragment }: Sql): Fragment => fragment`
  id, event_id, event, status, failure, attempts, is_redelivery, is_test, last_response_status, next_attempt_at,
  created_at, finished_at`

/** Reads a delivery of a webhook; throws 404 if it does not exist. */
export async function requireDelivery(sql: Sql, id: string, webhook_id: string): Promise<DeliveryRow> {
  const [row] = isId('dlv', id)
    ? await sql.run<DeliveryRow>(
        sql.fragment`select ${columns(sql)} from delivery where id = ${id} and webhook_id = ${webhook_id}`,
      )
    : []
  if (!row) throw notFound('delivery_not_found', 'delivery', id.slice(0, 100))
  return row
}

/** Filters of `GET /api/v1/webhooks/{webhook_id}/deliveries`; every member is validated. */
export interface DeliveryFilter {
  webhook_id: string
  status?: DeliveryRow['status'] | undefined
  event?: string | undefined
  created_after?: string | undefined
  created_before?: string | undefined
  /** Only deliveries sorted after this one; `total` counts all. */
  after_id?: string | undefined
  limit: number
  offset: number
}

/** A page of a webhook's deliveries, newest first, and their total number. */
export async function listDeliveries(
  sql: Sql,
  filter: DeliveryFilter,
): Promise<{ deliveries: DeliveryRow[]; total: number }> {
  const { created_after = null, created_before = null, status = null, event = null } = filter
  // Identifiers are ordered by the clocks that made them, which may differ: they only narrow down the rows.
  const where = sql.fragment`
    webhook_id = ${filter.webhook_id}
    and (${status}::text is null or status = ${status})
    and (${event}::text is null or event = ${event})
    and (${created_after}::timestamptz is null or created_at >= ${created_after}::timestamptz
      and id >= id_floor('dlv', greatest(${created_after}::timestamptz - interval '1 hour', 'epoch')))
    and (${created_before}::timestamptz is null or created_at < ${created_before}::timestamptz)`
  const [count] = await sql.run<{ total: number }>(sql.fragment`select count(*) as total from delivery where ${where}`)
  const older = filter.after_id === undefined ? sql.fragment`` : sql.fragment`and id < ${filter.after_id}`
  const deliveries = await sql.run<DeliveryRow>(sql.fragment`
    select ${columns(sql)} from delivery where ${where} ${older} order by id desc limit ${filter.limit} offset ${filter.offset}`)
  return { deliveries, total: count?.total ?? 0 }
}

/** The body of every delivery of an event, byte for byte; null if the event has been deleted. */
export async function findPayload(sql: Sql, event_id: string): Promise<string | null> {
  const [event] = await sql<StoredEvent>`select type, occurred_at, data from event where id = ${event_id}`
  return event ? deliveryBody(event) : null
}

/** A delivery attempt and its result. */
export interface AttemptRow {
  attempt: number
  at: string
  duration_ms: number
  request_url: string
  request_headers: Record<string, string>
  response_status: number | null
  response_headers: Record<string, string> | null
  response_body: Buffer | null
  error: string | null
}

/** Attempts of a delivery, oldest first. They are few, because retries end. */
export function listAttempts(sql: Sql, delivery_id: string): Promise<AttemptRow[]> {
  return sql<AttemptRow>`
    select attempt, at, duration_ms, request_url, request_headers, response_status, response_headers, response_body, error
    from delivery_attempt where delivery_id = ${delivery_id} order by attempt`
}

/** An attempt in a response; a character that was cut in two is left out. */
export function attemptView(row: AttemptRow) {
  const { attempt, at, duration_ms, error } = row
  const response =
    row.response_status === null
      ? null
      : {
          status: row.response_status,
          headers: row.response_headers ?? {},
          body: new TextDecoder().decode(row.response_body ?? undefined, { stream: true }),
        }
  return { attempt, at, duration_ms, request: { url: row.request_url, headers: row.request_headers }, response, error }
}

/**
 * Redelivers up to `countMax` failed deliveries of a webhook that were given up from `since` until before `until`,
 * oldest first. Returns how many. It locks the endpoint lease first, like every redelivery, so two concurrent calls
 * never take the same delivery.
 */
export async function recoverFailed(
  tx: Sql,
  webhook_id: string,
  { since, until, countMax }: { since: string; until: string; countMax: number },
): Promise<number> {
  await makeDue(tx, [webhook_id])
  const failed = await tx<{ id: string }>`
    select id from delivery
    where webhook_id = ${webhook_id} and status = 'failed' and finished_at >= ${since} and finished_at < ${until}
    order by finished_at, id limit ${countMax}`
  const ids = failed.map(({ id }) => id)
  return (await redeliverNow(tx, webhook_id, ids)).length
}

/** Whether a webhook has deliveries that were given up from `since` on and before `until`. */
export async function hasFailed(
  sql: Sql,
  webhook_id: string,
  { since, until }: { since: string; until: string },
): Promise<boolean> {
  const rows = await sql`
    select 1 from delivery
    where webhook_id = ${webhook_id} and status = 'failed' and finished_at >= ${since} and finished_at < ${until} limit 1`
  return rows.length > 0
}
