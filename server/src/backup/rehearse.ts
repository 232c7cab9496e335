import { givenUpMax, giveUpPending } from '../events/webhooks/endpoint-lease-rows.ts'
import type { Sql } from '../platform/postgres/database.ts'

/**
 * Disables everything in restored data that would make the service act, so that a copy can run beside its original:
 * agents and schedules are paused, so tasks wait; webhooks are disabled, and their pending deliveries fail.
 */
export async function prepareRehearsal(tx: Sql): Promise<void> {
  await tx`
    update agent set status = 'paused', settles_to = null, launch_trigger = null
    where status in ('running', 'creating', 'updating')`
  await tx`update schedule set status = 'paused', next_run_at = null where status = 'active'`
  const webhooks = await tx<{ id: string }>`
    update webhook set status = 'disabled', disabled_reason = 'requested', disabled_at = now()
    where status = 'active' returning id`
  for (const { id } of webhooks) while ((await giveUpPending(tx, id)) === givenUpMax);
}
