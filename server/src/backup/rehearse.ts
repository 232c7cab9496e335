import { givenUpMax, giveUpPending } from '../events/webhooks/endpoint-lease-rows.ts'
import type { Sql } from '../platform/postgres/database.ts'

/**
 * Takes from restored data whatever would have the service do something by itself, so that a copy can be started beside the
 * installation that it is of: agents are paused, and their tasks wait for them; schedules are paused; webhooks are
 * disabled, and what was pending for them is given up.
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
