import type { Sql } from '../../platform/postgres/database.ts'

/** With this delay of due deliveries, the service counts as behind (decision D102). */
const behind_minutes = 10

/**
 * Whether the service is behind with webhooks: an event has been unmatched, or a delivery due without any attempt, for
 * ten minutes. Failing or slow receivers and redeliveries do not count.
 */
export async function isBehind(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ is_behind: boolean }>`
    select exists (
      select from event where matched_at is null and id < id_floor('evt', now() - make_interval(mins => ${behind_minutes}))
    ) or exists (
      select from webhook_lane l where not l.is_troubled and l.due_at < now() - make_interval(mins => ${behind_minutes})
        and exists (
          select from delivery d where d.webhook_id = l.webhook_id and d.status = 'pending'
            and d.next_attempt_at < now() - make_interval(mins => ${behind_minutes})
            and d.attempts = 0 and not d.is_test and not d.is_redelivery)
    ) as is_behind`
  return row!.is_behind
}
