import { testEventName, type OutboxEventName } from '#contract/events/events.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { signalWebhooks } from '../webhook-signals.ts'

/** Maximum number of rows of one statement. */
const batch = 1000
/** Maximum number of deliveries that one statement gives up, so that others wait for it only briefly. */
export const givenUpMax = 2000

/** The event of deliveries. */
export interface DeliveredEvent {
  id: string
  org_id: string
  type: OutboxEventName
}

/** A delivery that was added. */
export interface StartedDelivery {
  id: string
  webhook_id: string
}

/**
 * Marks the leases of webhooks as due: the process that takes such a lease reads the deliveries. Part of the
 * transaction that makes them due. Leases are locked in the order of their ids, so a process that returns a lease
 * either sees the deliveries or is followed by this mark. Lock order is webhook, lease, delivery, as everywhere. Throws
 * error `23503` if a webhook was deleted meanwhile.
 */
export async function makeDue(tx: Sql, webhook_ids: readonly string[]): Promise<void> {
  if (webhook_ids.length === 0) return
  await tx`
    insert into webhook_lane as l (webhook_id, due_at)
    select distinct id, now() from unnest(${[...webhook_ids]}::text[]) w(id) order by id
    on conflict (webhook_id) do update set due_at = excluded.due_at
      -- A lease that is due already is locked too, but not written.
      where l.due_at is null or l.due_at > excluded.due_at`
  signalWebhooks(tx, 'due')
}

/** A delivery to add. */
export interface NewDelivery {
  id: string
  webhook_id: string
  event: DeliveredEvent
}

/** Creates deliveries that are due at once, in the caller's transaction, whether or not their webhooks subscribe. */
export async function insertDeliveries(
  tx: Sql,
  deliveries: readonly NewDelivery[],
  { is_test = false }: { is_test?: boolean } = {},
): Promise<void> {
  if (deliveries.length === 0) return
  await makeDue(
    tx,
    deliveries.map(({ webhook_id }) => webhook_id),
  )
  for (let from = 0; from < deliveries.length; from += batch) {
    const rows = deliveries.slice(from, from + batch).map(({ id, webhook_id, event }) => ({
      id,
      webhook_id,
      org_id: event.org_id,
      event_id: event.id,
      event: event.type,
    }))
    await tx`
      insert into delivery (id, webhook_id, org_id, event_id, event, is_test, next_attempt_at)
      select id, webhook_id, org_id, event_id, event, ${is_test}, now()
      from jsonb_to_recordset(${jsonb(rows)}::jsonb) d(id text, webhook_id text, org_id text, event_id text, event text)`
  }
}

/** Creates deliveries of one event to these webhooks; returns them in the order of the webhooks. */
export async function addDeliveries(
  tx: Sql,
  event: DeliveredEvent,
  webhook_ids: readonly string[],
  options: { is_test?: boolean } = {},
): Promise<StartedDelivery[]> {
  const added = webhook_ids.map((webhook_id) => ({ id: newId('dlv'), webhook_id }))
  await insertDeliveries(
    tx,
    added.map((delivery) => ({ ...delivery, event })),
    options,
  )
  return added
}

/**
 * Sends a test event to one webhook only: writes the event, already matched, and its delivery. Its failures neither
 * disable the webhook nor cause an `error.occurred`. `data` is what the receiver reads.
 */
export async function addTestDelivery(
  tx: Sql,
  webhook: { id: string; org_id: string },
  data: Record<string, unknown>,
  type: OutboxEventName = testEventName,
): Promise<StartedDelivery> {
  const { org_id } = webhook
  const event = { id: newId('evt'), org_id, type }
  await tx`
    insert into event (id, org_id, type, data, matched_at) values (${event.id}, ${org_id}, ${type}, ${jsonb(data)}, now())`
  const [added] = await addDeliveries(tx, event, [webhook.id], { is_test: true })
  return added!
}

/**
 * Makes deliveries of a webhook due now, whatever their state: each starts its schedule again, as the same row and with
 * the same event. Returns the ids of those that the webhook has.
 */
export async function redeliverNow(tx: Sql, webhook_id: string, delivery_ids: readonly string[]): Promise<string[]> {
  if (delivery_ids.length === 0) return []
  await makeDue(tx, [webhook_id])
  const rows = await tx<{ id: string }>`
    update delivery set status = 'pending', next_attempt_at = now(), round_attempts = 0, is_redelivery = true,
      failure = null, finished_at = null
    where id = any(${[...delivery_ids]}) and webhook_id = ${webhook_id} returning id`
  return rows.map(({ id }) => id)
}

/**
 * Gives up pending deliveries of a webhook that is being disabled, at most `givenUpMax`; returns their number. Part of
 * the transaction that disables it, which locks the lease first; the owner of the lease gives up the rest. Requests in
 * flight end, and their results are written only if the receiver accepted the event.
 */
export async function giveUpPending(tx: Sql, webhook_id: string): Promise<number> {
  // The webhook cannot be activated meanwhile, so no newer delivery is given up.
  const [webhook] = await tx<{ failure: 'webhook_disabled' | 'gone' }>`
    select case disabled_reason when 'gone' then 'gone' else 'webhook_disabled' end as failure from webhook
    where id = ${webhook_id} and status = 'disabled' for share`
  if (!webhook) return 0
  // An array, because a join with so many rows may be planned as if there were few.
  const rows = await tx`
    update delivery set status = 'failed', failure = ${webhook.failure}, next_attempt_at = null, finished_at = now()
    where id = any(array(
        select id from delivery where webhook_id = ${webhook_id} and status = 'pending' limit ${givenUpMax}))
      and status = 'pending'
    returning 1`
  return rows.length
}
