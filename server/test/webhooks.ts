import type { EventData } from '#contract/events/event-payloads.ts'
import type { OutboxEventName } from '#contract/events/events.ts'
import { emit } from '../src/events/outbox.ts'
import { makeDue } from '../src/events/webhooks/endpoint-lease-rows.ts'
import { jsonb, type Sql } from '../src/platform/postgres/database.ts'
import { newId } from '../src/platform/ids.ts'
import { eventually, type TestService } from './harness.ts'

/** The secret of webhooks in tests, unless they say another one. */
export const testSecret = 'whsec_c2VjcmV0LW9mLXRoZS13ZWJob29rLXJlY2VpdmVy'

/** Registers a webhook through the API; gives its id. */
export async function registerWebhook(
  test: Pick<TestService, 'send'>,
  url: string,
  changes: object = {},
): Promise<string> {
  const body = { url, events: ['project.created'], secret: testSecret, ...changes }
  const reply = await test.send('POST', '/api/v1/webhooks', { body })
  if (reply.status !== 201) throw new Error(`not registered: ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body.id
}

/** Data of a `project.created`. */
export function aProject(name = 'demo'): EventData<'project.created'> {
  const at = '2026-11-20T09:30:00.000Z'
  return { project: { id: 42, name, created_at: at, updated_at: at }, user_id: 'user_x' }
}

/** Writes an event of an organization, as its cause does. */
export async function tell<Name extends OutboxEventName>(
  sql: Sql,
  org_id: string,
  type: Name,
  data: EventData<Name>,
): Promise<void> {
  await sql.begin((tx) => emit(tx, type, { org_id }, data))
}

/** A delivery as tests look at it. */
export interface SeenDelivery {
  id: string
  event_id: string
  event: string
  status: string
  failure: string | null
  attempts: number
  round_attempts: number
  last_response_status: number | null
  next_attempt_at: string | null
  finished_at: string | null
  /** From the end of the last attempt to the next one; null where there is none. */
  wait_seconds: number | null
}

/** Deliveries of a webhook, the first one first. */
export function listDeliveries(sql: Sql, webhook_id: string): Promise<SeenDelivery[]> {
  return sql<SeenDelivery>`
    select id, event_id, event, status, failure, attempts, round_attempts, last_response_status, next_attempt_at, finished_at,
      extract(epoch from next_attempt_at - (
        select max(at + duration_ms * interval '1 ms') from delivery_attempt a where a.delivery_id = d.id)) as wait_seconds
    from delivery d where webhook_id = ${webhook_id} order by id`
}

/** Resolves with the first delivery of a webhook as soon as it has had so many attempts. */
export function attempted(sql: Sql, webhook_id: string, attempts: number, timeout_ms?: number): Promise<SeenDelivery> {
  return eventually(
    async () => (await listDeliveries(sql, webhook_id)).find((one) => one.attempts >= attempts),
    timeout_ms,
  )
}

/** Has what waits for a webhook become due now, as if the time had passed. */
export async function passTime(sql: Sql, webhook_id: string): Promise<void> {
  await sql.begin(async (tx) => {
    await makeDue(tx, [webhook_id])
    await tx`update delivery set next_attempt_at = now() where webhook_id = ${webhook_id} and status = 'pending'`
  })
}

/** Writes webhooks as they would be registered, all at once; gives their ids. */
export async function insertWebhooks(
  { sql, service, owner }: Pick<TestService, 'sql' | 'service' | 'owner'>,
  urls: readonly string[],
  events: readonly OutboxEventName[] = ['project.created'],
): Promise<string[]> {
  const rows = urls.map((url) => {
    const id = newId('wh')
    const secret = service.context.secrets.encrypt('webhook-secret', testSecret, id).toString('base64')
    return { id, url, secret }
  })
  await sql`
    insert into webhook (id, org_id, url, events, secret, created_by)
    select id, ${owner.org_id}, url, ${[...events]}, decode(secret, 'base64'), ${owner.user_id}
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) w(id text, url text, secret text)`
  return rows.map(({ id }) => id)
}

/** Creates so many deliveries of a webhook of one event at once, as if it had not been reached for a while. */
export async function insertBacklog(
  { sql, owner }: Pick<TestService, 'sql' | 'owner'>,
  webhook_id: string,
  count: number,
): Promise<void> {
  const event_id = newId('evt')
  await sql.begin(async (tx) => {
    await makeDue(tx, [webhook_id])
    await tx`
      insert into event (id, org_id, type, data, matched_at)
      values (${event_id}, ${owner.org_id}, 'project.created', ${jsonb(aProject('backlog'))}, now())`
    await tx`
      insert into delivery (id, webhook_id, org_id, event_id, event, next_attempt_at)
      select left(${newId('dlv')}, 20) || lpad(i::text, 10, '0'), ${webhook_id}, ${owner.org_id}, ${event_id}, 'project.created', now()
      from generate_series(1, ${count}::int) i`
  })
}
