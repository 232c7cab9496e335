import type { Sql } from '../../platform/postgres/database.ts'

/** Whether no delivery of a month (`202611`) waits for an attempt. Deliveries to a deleted webhook do not count. */
export async function areDeliveriesOver(sql: Sql, month: string): Promise<boolean> {
  const rows = await sql`
    with month as (select to_timestamp(${month}, 'YYYYMM') as at)
    select 1 from delivery d where d.status = 'pending' and d.id >= (select id_floor('dlv', at) from month)
      and d.id < (select id_floor('dlv', at + interval '1 month') from month)
      and exists (select from webhook w where w.id = d.webhook_id) limit 1`
  return rows.length === 0
}

/**
 * Whether no event of a month can still be delivered. The last attempt is made days after an event, so this is true
 * after 90 days, except for redeliveries and for a service that was off that long.
 */
export async function areEventsDelivered(sql: Sql, month: string): Promise<boolean> {
  const rows = await sql`
    with month as (
      select id_floor('evt', at) as first, id_floor('evt', at + interval '1 month') as next
      from to_timestamp(${month}, 'YYYYMM') at)
    select 1 from event, month where matched_at is null and id >= first and id < next
    union all
    select 1 from delivery d, month where d.status = 'pending' and d.event_id >= first and d.event_id < next
      and exists (select from webhook w where w.id = d.webhook_id)
    limit 1`
  return rows.length === 0
}
