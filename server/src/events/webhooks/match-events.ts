import { subscriptionsOf, type OutboxEventName } from '#contract/events/events.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { passes } from './webhook-filters.ts'
import { insertDeliveries, type NewDelivery } from './endpoint-lease-rows.ts'
import { pushesOf } from './match-pushes.ts'

/** Maximum number of events in one transaction, unless they make more deliveries than `deliveriesMax`. */
const eventsMax = 100
const deliveriesMax = 2000

interface UnmatchedEvent {
  id: string
  org_id: string
  type: OutboxEventName
  occurred_at: string
  data: Record<string, unknown>
}

interface ActiveWebhook {
  id: string
  org_id: string
  events: string[]
  filters: Record<string, unknown>
}

/**
 * Matches events with webhooks, oldest first: the active webhooks of the organization that subscribe and whose filters
 * pass (decision D95). Deliveries, their leases and the mark "matched" are one transaction, so a crash leaves all of
 * them or none. Processes do not wait for each other's events. Returns the number of new deliveries, and whether more
 * events may be waiting.
 */
export async function matchEvents(sql: Sql): Promise<{ started: number; more: boolean }> {
  const [waiting] = await sql`select 1 from event where matched_at is null limit 1`
  if (!waiting) return { started: 0, more: false }
  return sql.begin(async (tx) => {
    const events = await tx<UnmatchedEvent>`
      select id, org_id, type, occurred_at, data from event where matched_at is null order by id limit ${eventsMax} for update skip locked`
    if (events.length === 0) return { started: 0, more: false }
    const webhooks = await listSubscribed(tx, events)
    const matched: string[] = []
    const deliveries: NewDelivery[] = []
    const taken: UnmatchedEvent[] = []
    for (const event of events) {
      if (deliveries.length >= deliveriesMax) break
      matched.push(event.id)
      taken.push(event)
      for (const webhook of webhooks.get(event.org_id) ?? [])
        if (isFor(webhook, event)) deliveries.push({ id: newId('dlv'), webhook_id: webhook.id, event })
    }
    deliveries.push(...(await pushesOf(tx, taken)))
    await insertDeliveries(tx, deliveries)
    await tx`update event set matched_at = now() where id = any(${matched})`
    return { started: deliveries.length, more: matched.length < events.length || events.length === eventsMax }
  }, 'forceIndexPlan')
}

function isFor({ events, filters }: ActiveWebhook, { type, data }: UnmatchedEvent): boolean {
  return subscriptionsOf(type).some((name) => events.includes(name)) && passes(filters, data)
}

/** By organization, the webhooks that may match some of these events. */
async function listSubscribed(tx: Sql, events: readonly UnmatchedEvent[]): Promise<Map<string, ActiveWebhook[]>> {
  const names = [...new Set(events.flatMap(({ type }) => subscriptionsOf(type)))]
  const rows = await tx<ActiveWebhook>`
    select id, org_id, events, filters from webhook
    where status = 'active' and push_task_id is null and org_id = any(${[...new Set(events.map(({ org_id }) => org_id))]}) and events && ${names}
    order by id`
  return Map.groupBy(rows, ({ org_id }) => org_id)
}
