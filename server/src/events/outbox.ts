import type { EventData, EventOf } from '#contract/events/event-payloads.ts'
import { subscriptionsOf, type OutboxEventName } from '#contract/events/events.ts'
import { jsonb, type Fragment, type Sql } from '../platform/postgres/database.ts'
import { newId } from '../platform/ids.ts'
import { signalWebhooks } from './webhook-signals.ts'

/** The organization of an event, and its project and agent, if any. */
export interface EventScope {
  org_id: string
  project_id?: number | undefined
  agent_id?: string | undefined
}

/** An event to write. `data` is what subscribers read, and has no secrets. */
export type NewEvent<Name extends OutboxEventName = OutboxEventName> = EventOf<Name> & {
  scope: EventScope
  /** When the event happened; by default the time of the transaction. */
  occurred_at?: string
}

/**
 * Writes an event into the outbox, in the transaction that it reports: after a crash, either both exist or neither
 * (decision D93).
 */
export async function emit<Name extends OutboxEventName>(
  tx: Sql,
  type: Name,
  scope: EventScope,
  data: EventData<Name>,
): Promise<void> {
  await writeEvents(tx, [{ type, scope, data }])
}

/**
 * Writes several events into the outbox in one statement, like `emit`. An event without a subscribed webhook in its
 * organization is stored as matched, because there is nothing to deliver.
 */
export async function emitAll(tx: Sql, events: readonly NewEvent[]): Promise<void> {
  if (events.length > 0) await writeEvents(tx, events)
}

async function writeEvents(
  tx: Sql,
  events: readonly { type: OutboxEventName; scope: EventScope; data: EventData }[],
): Promise<void> {
  noteEvents(tx, await tx.run<WrittenEvent>(insertEvents(tx, events)))
}

/** Whether an event has nothing to deliver, as returned by the statement of `insertEvents`. */
export interface WrittenEvent {
  is_matched: boolean
}

/**
 * The insert of events, as part of a caller's statement, if `condition` is true. Its returned rows must be passed to
 * `noteEvents`.
 */
export function insertEvents(
  { fragment }: Sql,
  events: readonly { type: OutboxEventName; scope: EventScope; data: EventData; occurred_at?: string }[],
  condition: Fragment = fragment`true`,
): Fragment {
  const rows = events.map(({ type, scope, data, occurred_at }) => ({
    id: newId('evt'),
    ...scope,
    type,
    data,
    occurred_at,
    subscriptions: subscriptionsOf(type),
  }))
  return fragment`
    insert into event (id, org_id, project_id, agent_id, type, data, occurred_at, matched_at)
    select id, org_id, project_id, agent_id, type, data, coalesce(occurred_at, now()),
      case when not exists (
        select from webhook w where w.org_id = e.org_id and w.status = 'active' and w.push_task_id is null and w.events && e.subscriptions)
        and not exists (select from webhook w where w.push_task_id = e.data->'task'->>'id') then now() end
    from jsonb_to_recordset(${jsonb(rows)}::jsonb)
      as e(id text, org_id text, project_id bigint, agent_id text, type text, data jsonb, occurred_at timestamptz, subscriptions text[])
    where ${condition}
    returning matched_at is not null as is_matched`
}

/** Wakes the delivery to webhooks after the commit, if events wait for it. */
export function noteEvents(tx: Sql, written: readonly WrittenEvent[]): void {
  if (written.some(({ is_matched }) => !is_matched)) signalWebhooks(tx, 'event')
}
