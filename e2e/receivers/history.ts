import type { OutboxEventName } from '#contract/events/events.ts'
import { deliveryBody } from '../../server/src/events/webhooks/delivery/sign.ts'
import { makeDue } from '../../server/src/events/webhooks/endpoint-lease-rows.ts'
import type { Sql } from '../../server/src/platform/postgres/database.ts'
import type { CommittedEvent } from '../../server/test/history/check-deliveries.ts'
import type { OutboxEvent, OutboxHistory } from '../../server/test/history/check-outbox.ts'

/** An event as it stands in the outbox. */
export type StoredEvent = CommittedEvent & OutboxEvent

/** Everything that was ever written into the outbox, the first one first. */
export async function readEvents(sql: Sql): Promise<StoredEvent[]> {
  const rows = await sql<OutboxEvent & { org_id: string; type: OutboxEventName; occurred_at: string }>`
    select id, org_id, type, occurred_at, data from event order by id`
  return rows.map((row) => ({ ...row, body: deliveryBody({ ...row, data: { ...row.data } }) }))
}

/** What is there in an organization: projects, and the tasks of agents that were not deleted. */
export async function readThings(sql: Sql, org_id: string): Promise<Pick<OutboxHistory, 'projects' | 'tasks'>> {
  const projects = await sql<{ id: number; name: string }>`select id, name from project where org_id = ${org_id}`
  const tasks = await sql<{ id: string; status: string }>`
    select t.id, t.status from task t join agent a on a.id = t.agent_id join project p on p.id = a.project_id
    where p.org_id = ${org_id}`
  return { projects, tasks }
}

/** Has every delivery that waits for its next attempt become due, as if the time had passed. */
export async function passTime(sql: Sql): Promise<void> {
  await sql.begin(async (tx) => {
    const waiting = await tx<{ webhook_id: string }>`
      select distinct webhook_id from delivery where status = 'pending' and next_attempt_at > now()`
    await makeDue(
      tx,
      waiting.map(({ webhook_id }) => webhook_id),
    )
    await tx`update delivery set next_attempt_at = now() where status = 'pending' and next_attempt_at > now()`
  })
}

/** Webhook work that is left; none where all events were delivered. */
export async function leftOver(sql: Sql): Promise<string[]> {
  const [row] = await sql<Record<string, number>>`
    select (select count(*) from event where matched_at is null) as "unmatched events",
      (select count(*) from task where finished_at is null) as "open tasks",
      (select count(*) from delivery where status = 'pending') as "pending deliveries",
      (select count(*) from delivery where status = 'failed') as "failed deliveries"`
  return Object.entries(row!).flatMap(([what, count]) => (count > 0 ? [`${count} ${what} are left`] : []))
}

/** Whether an event waits to be matched or a delivery for its first attempt: a kill at this moment interrupts something. */
export async function isDelivering(sql: Sql): Promise<boolean> {
  const rows = await sql`
    select from event where matched_at is null
    union all
    select from delivery d where status = 'pending' and not exists (select from delivery_attempt a where a.delivery_id = d.id)
    limit 1`
  return rows.length > 0
}

/**
 * What kills met, so that it is known what a run has proved: events that were committed before and matched after one, and
 * deliveries that were begun before and first tried after one. Moments in milliseconds since 1970.
 */
export async function metByKills(sql: Sql, killed: readonly number[]): Promise<{ unmatched: number; unsent: number }> {
  const [row] = await sql<{ unmatched: number; unsent: number }>`
    with kill as (select to_timestamp(ms / 1000) as at from unnest(${[...killed]}::float8[]) k(ms))
    select (
      select count(*) from event e where exists (select from kill where at between e.occurred_at and e.matched_at)
    ) as unmatched, (
      select count(*) from delivery d join delivery_attempt a on a.delivery_id = d.id and a.attempt = 1
      where exists (select from kill where kill.at between d.created_at and a.at)
    ) as unsent`
  return row!
}
