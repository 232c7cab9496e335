import { jsonb, type Sql } from '../../../platform/postgres/database.ts'
import { afterAttempt, type AfterAttempt, type AttemptedDelivery, type AttemptedWebhook } from './after-attempt.ts'
import { systemActor, recordAudit } from '../../audit/audit.ts'
import type { AttemptResult } from './delivery-store.ts'
import { emitAll } from '../../outbox.ts'
import { failingMax_ms, failuresApart_ms, isTrouble } from '../webhook-health.ts'
import { giveUpPending } from '../endpoint-lease-rows.ts'

/** An attempt that counts, with its changes. */
interface Written extends AfterAttempt {
  result: AttemptResult
}

/**
 * Writes the results of attempts in one transaction: attempts, deliveries, the health of webhooks, and events about
 * them. An attempt counts if its endpoint lease is still this owner's and the delivery had no other attempt meanwhile.
 * So a process that was taken for dead changes nothing, and a repeated write changes nothing. Locks webhooks, then
 * leases, then deliveries, each in the order of their ids.
 */
export async function writeAttempts(
  sql: Sql,
  owner: string,
  results: readonly AttemptResult[],
  random: () => number,
): Promise<void> {
  await sql.begin(async (tx) => {
    const webhooks = await lockWebhooks(tx, owner, [...new Set(results.map(({ webhook_id }) => webhook_id))])
    const deliveries = await lockDeliveries(
      tx,
      results.map(({ delivery_id }) => delivery_id),
    )
    const written: Written[] = []
    for (const result of results) {
      const webhook = webhooks.get(result.webhook_id)
      const delivery = deliveries.get(result.delivery_id)
      if (!webhook || delivery?.attempts !== result.attempts) continue
      const after = afterAttempt(delivery, webhook, result, { now: new Date(webhook.now), rng: random() })
      webhooks.set(webhook.id, { ...webhook, ...after.webhook })
      written.push({ ...after, result })
    }
    if (written.length === 0) return
    await insertAttempts(tx, written)
    await updateDeliveries(tx, written)
    await updateWebhooks(tx, written)
  }, 'forceIndexPlan')
}

type LockedWebhook = AttemptedWebhook & { now: string }

/** Webhooks whose endpoint lease the owner still holds. */
async function lockWebhooks(tx: Sql, owner: string, ids: readonly string[]): Promise<Map<string, LockedWebhook>> {
  const rows = await tx<LockedWebhook>`
    select id, org_id, url, status, created_by, failing_since, slowed_until, now() as now,
      -- From its own deliveries to their attempts, whatever the planner knows: others may have made millions. What was
      -- delivered was so before it began to fail.
      coalesce(failing_since <= now() - make_interval(secs => ${failingMax_ms / 1000}), false) and exists (
        select from (
          select d.id from delivery d
          where d.webhook_id = w.id and d.status <> 'delivered' and d.attempts > 0 and not d.is_redelivery and not d.is_test
          order by d.id desc offset 0) d
        cross join lateral (
          select from delivery_attempt a
          where a.delivery_id = d.id and a.error is not null
            and a.at between now() - make_interval(secs => ${failingMax_ms / 1000}) and now() - make_interval(secs => ${failuresApart_ms / 1000})
          limit 1) a) as failed_before
    from webhook w where id = any(${[...ids]}) order by id for no key update`
  const leases = await tx<{ webhook_id: string }>`
    select webhook_id from webhook_lane where webhook_id = any(${[...ids]}) and owner = ${owner}
    order by webhook_id for no key update`
  const own = new Set(leases.map(({ webhook_id }) => webhook_id))
  return new Map(rows.filter(({ id }) => own.has(id)).map((row) => [row.id, row]))
}

async function lockDeliveries(tx: Sql, ids: readonly string[]): Promise<Map<string, AttemptedDelivery>> {
  const rows = await tx<AttemptedDelivery>`
    select id, event, status, failure, attempts, round_attempts, is_redelivery, is_test, next_attempt_at, finished_at
    from delivery where id = any(${[...ids]}) order by id for no key update`
  return new Map(rows.map((row) => [row.id, row]))
}

async function insertAttempts(tx: Sql, written: readonly Written[]): Promise<void> {
  const rows = written.map(({ delivery, result }) => ({
    ...result,
    attempt: delivery.attempts,
    body: result.body?.toString('base64') ?? null,
  }))
  await tx`
    insert into delivery_attempt (delivery_id, attempt, at, duration_ms, request_url, request_headers, response_status,
      response_headers, response_body, error)
    select delivery_id, attempt, at, duration_ms, request_url, request_headers, status, response_headers,
      decode(body, 'base64'), error
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) r(delivery_id text, attempt int, at timestamptz, duration_ms int,
      request_url text, request_headers jsonb, status int, response_headers jsonb, body text, error text)`
}

async function updateDeliveries(tx: Sql, written: readonly Written[]): Promise<void> {
  const rows = written.map(({ delivery, result }) => ({ ...delivery, last_response_status: result.status }))
  await tx`
    update delivery d set status = r.status, failure = r.failure, attempts = r.attempts, round_attempts = r.round_attempts,
      next_attempt_at = r.next_attempt_at, finished_at = r.finished_at, last_response_status = r.last_response_status
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) r(id text, status text, failure text, attempts int, round_attempts int,
      next_attempt_at timestamptz, finished_at timestamptz, last_response_status int)
    where d.id = r.id`
}

async function updateWebhooks(tx: Sql, written: readonly Written[]): Promise<void> {
  // The last result of each webhook.
  const last = new Map(
    written.map(({ webhook: { id, failing_since, slowed_until }, result }) => [
      id,
      { id, failing_since, slowed_until, is_troubled: isTrouble(result) },
    ]),
  )
  await tx`
    with r as (
      select * from jsonb_to_recordset(${jsonb([...last.values()])}::jsonb)
        r(id text, failing_since timestamptz, slowed_until timestamptz, is_troubled boolean)
    ), leases as (
      update webhook_lane l set is_troubled = r.is_troubled from r
      where l.webhook_id = r.id and l.is_troubled <> r.is_troubled
    )
    update webhook w set failing_since = r.failing_since, slowed_until = r.slowed_until from r
    where w.id = r.id and (w.failing_since, w.slowed_until) is distinct from (r.failing_since, r.slowed_until)`
  for (const { webhook, disabled } of written) if (disabled) await disable(tx, webhook, disabled)
  const events = written.flatMap(({ webhook: { org_id }, errors }) =>
    errors.map((data) => ({ type: 'error.occurred' as const, scope: { org_id }, data })),
  )
  await emitAll(tx, events)
}

async function disable(tx: Sql, { id, org_id }: AttemptedWebhook, reason: 'gone' | 'failing'): Promise<void> {
  await tx`
    update webhook set status = 'disabled', disabled_reason = ${reason}, disabled_at = now(),
      updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id}`
  await giveUpPending(tx, id)
  await recordAudit(tx, systemActor(org_id), {
    action: 'webhook.disabled',
    target: id,
    before: { status: 'active', disabled_reason: null },
    after: { status: 'disabled', disabled_reason: reason },
  })
}
