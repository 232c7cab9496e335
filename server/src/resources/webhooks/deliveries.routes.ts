import type { FastifyInstance } from 'fastify'
import type { Actor } from '#contract/accounts/audit.ts'
import * as operations from '#contract/resources/deliveries.ts'
import { eventExamples } from '#contract/events/event-examples.ts'
import { testEventName, type OutboxEventName } from '#contract/events/events.ts'
import { bounds } from '#contract/core/limits.ts'
import { invalid } from '#contract/core/problems.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { addTestDelivery, redeliverNow } from '../../events/webhooks/endpoint-lease-rows.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { cutPage, isIdKey, keyOf } from '../../http/lists/cursor.ts'
import { pageCursorPagination, timestamp } from '../../http/lists/pagination.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import {
  attemptView,
  findPayload,
  hasFailed,
  listAttempts,
  listDeliveries,
  recoverFailed,
  requireDelivery,
} from './deliveries.queries.ts'
import { requireWebhook, shareWebhook } from './webhooks.queries.ts'

/** Deliveries that one transaction redelivers, so that senders wait for it only briefly. */
const batch = 1000
const day_ms = 86_400_000

/** Deliveries of webhooks, and redelivery (decisions D97 and D100). */
export function deliveryRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, operations.testWebhook, {
    load: loadWebhook,
    run: ({ sql, loaded, body, principal, actor }) => {
      const type: OutboxEventName = body.event ?? testEventName
      const data =
        type === testEventName
          ? { ...eventExamples[type], webhook_id: loaded.id, user_id: principal.user_id }
          : eventExamples[type]
      return sql.begin(async (tx) => {
        await requireActive(tx, loaded.id)
        const { id } = await addTestDelivery(tx, { id: loaded.id, org_id: principal.org_id }, data, type)
        const detail = { delivery_id: id, event: type }
        await recordAudit(tx, actor, { action: 'webhook.tested', target: loaded.id, detail })
        return requireDelivery(tx, id, loaded.id)
      })
    },
  })

  handle(app, http, operations.listDeliveries, {
    load: loadWebhook,
    run: async ({ sql, loaded, query }) => {
      const { page, limit, status, event } = query
      const { deliveries: read, total } = await listDeliveries(sql, {
        webhook_id: loaded.id,
        status,
        event,
        created_after: timestamp(query.created_after),
        created_before: timestamp(query.created_before),
        after_id: keyOf(query.cursor, isIdKey('dlv')),
        limit: limit + 1,
        offset: (page - 1) * limit,
      })
      const { entries: deliveries, next_cursor } = cutPage(read, limit, ({ id }) => id)
      return { deliveries, pagination: pageCursorPagination(total, page, limit, next_cursor) }
    },
  })

  handle(app, http, operations.getDelivery, {
    load: loadDelivery,
    run: async ({ sql, loaded }) => ({
      ...loaded,
      payload: await findPayload(sql, loaded.event_id),
      attempts: (await listAttempts(sql, loaded.id)).map(attemptView),
    }),
  })

  handle(app, http, operations.redeliverDelivery, {
    load: loadDelivery,
    run: ({ sql, loaded, params, actor }) =>
      sql.begin(async (tx) => {
        await requireActive(tx, params.webhook_id!)
        await redeliverNow(tx, params.webhook_id!, [loaded.id])
        const detail = { delivery_id: loaded.id }
        await recordAudit(tx, actor, { action: 'webhook.redelivered', target: params.webhook_id!, detail })
        return requireDelivery(tx, loaded.id, params.webhook_id!)
      }),
  })

  handle(app, http, operations.recoverDeliveries, {
    load: loadWebhook,
    run: async ({ sql, loaded, body, actor }) => {
      const since = sinceOf(body.since)
      const { recovered, has_more } = await recover(sql, loaded.id, since, actor)
      const deliveries = recovered === 1 ? 'delivery is' : 'deliveries are'
      return { message: `${recovered} ${deliveries} due again`, webhook_id: loaded.id, recovered, has_more }
    },
  })
}

function loadWebhook({ sql, params, principal }: Loading) {
  return requireWebhook(sql, params.webhook_id!, principal)
}

async function loadDelivery(loading: Loading) {
  const { id } = await loadWebhook(loading)
  return requireDelivery(loading.sql, loading.params.delivery_id!, id)
}

/**
 * Throws unless the webhook is active, and locks it until the transaction ends: a request that disables it waits, and
 * then gives up the deliveries created here.
 */
async function requireActive(tx: Sql, id: string): Promise<void> {
  if ((await shareWebhook(tx, id)) === 'active') return
  throw invalid({ field: 'status', message: 'must be active: the webhook is disabled', code: 'invalid_choice' })
}

/** The time from which deliveries are recovered; it must be within their retention. */
function sinceOf(text: string): string {
  const since = timestamp(text)!
  const age_ms = Date.now() - Date.parse(since)
  if (age_ms >= 0 && age_ms <= bounds.recover_days * day_ms) return since
  throw invalid({
    field: 'since',
    message: `must not be in the future, nor more than ${bounds.recover_days} days ago`,
    code: 'out_of_range',
  })
}

/**
 * Recovers in transactions of limited size. Stops if the webhook is disabled meanwhile, which gives up the recovered
 * deliveries again.
 */
async function recover(
  sql: Sql,
  webhook_id: string,
  since: string,
  actor: Actor,
): Promise<{ recovered: number; has_more: boolean }> {
  // Deliveries that are given up from now on, also recovered ones, are not recovered again.
  const [clock] = await sql<{ now: string }>`select clock_timestamp()::text as now`
  const range = { since, until: clock!.now }
  let recovered = 0
  while (recovered < bounds.recovered_deliveries) {
    const countMax = Math.min(batch, bounds.recovered_deliveries - recovered)
    const count = await sql.begin(async (tx) => {
      await requireActive(tx, webhook_id)
      const due = await recoverFailed(tx, webhook_id, { ...range, countMax })
      // Audited once, with the first batch; the total is not known yet.
      if (due > 0 && recovered === 0)
        await recordAudit(tx, actor, { action: 'webhook.recovered', target: webhook_id, detail: { since } })
      return due
    })
    recovered += count
    if (count < countMax) return { recovered, has_more: false }
  }
  return { recovered, has_more: await hasFailed(sql, webhook_id, range) }
}
