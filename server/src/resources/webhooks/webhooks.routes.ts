import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { invalid } from '#contract/core/problems.ts'
import * as operations from '#contract/resources/webhooks.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { giveUpPending, makeDue } from '../../events/webhooks/endpoint-lease-rows.ts'
import { etag, requireMatch, timeRevision } from '../../http/etag.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { timestamp, pagePagination } from '../../http/lists/pagination.ts'
import { newId } from '../../platform/ids.ts'
import { type Egress, EgressRefused } from '../../platform/egress/safe-fetch.ts'
import {
  changeWebhook,
  deleteWebhook,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  requireWebhook,
  type LockedWebhook,
  type WebhookRow,
} from './webhooks.queries.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Length of a generated secret. */
const secretLength_bytes = 32

/**
 * Registration and management of webhooks (spec 4.5, decisions D92 and D100). Only the response that creates a secret
 * contains it.
 */
export function webhookRoutes(app: FastifyInstance, http: HttpContext, { egress, secrets }: Context): void {
  const encrypt = (secret: string, id: string): Buffer => secrets.encrypt(secretLabels.webhook, secret, id)
  /** The encrypted secret if it differs from the webhook's current one; the same secret again changes nothing. */
  const another = (secret: string | undefined, before: LockedWebhook): Buffer | undefined =>
    secret === undefined || secrets.decrypt(secretLabels.webhook, before.secret, before.id) === secret
      ? undefined
      : encrypt(secret, before.id)

  handle(app, http, operations.createWebhook, {
    run: async ({ sql, principal, body, header, actor }) => {
      checkUrl(egress, body.url)
      const id = newId('wh')
      const row = await sql.begin(async (tx) => {
        const webhook = {
          id,
          org_id: principal.org_id,
          url: body.url,
          events: unique(body.events),
          filters: body.filters ?? {},
          secret: encrypt(body.secret, id),
          created_by: principal.user_id,
        }
        const made = await insertWebhook(tx, webhook, bounds.webhooks_per_organization)
        if (made) await recordAudit(tx, actor, { action: 'webhook.created', target: id, after: audited(made) })
        return made
      })
      if (!row) throw tooMany()
      header('etag', etag(timeRevision(row)))
      const { url, events, filters, status, created_at, updated_at } = row
      return { id, url, events, filters, status, created_at, updated_at }
    },
  })

  handle(app, http, operations.listWebhooks, {
    run: async ({ sql, principal, query }) => {
      const { page, limit, sort, order, search, status, agent_id } = query
      const { webhooks, total } = await listWebhooks(sql, {
        org_id: principal.org_id,
        search,
        status,
        agent_id,
        sort,
        order,
        limit,
        offset: (page - 1) * limit,
        created_after: timestamp(query.created_after),
        created_before: timestamp(query.created_before),
        updated_after: timestamp(query.updated_after),
        updated_before: timestamp(query.updated_before),
      })
      return { webhooks, pagination: pagePagination(total, page, limit) }
    },
  })

  handle(app, http, operations.getWebhook, {
    load: loadWebhook,
    run: async ({ loaded, header }) => {
      header('etag', etag(timeRevision(loaded)))
      return loaded
    },
  })

  handle(app, http, operations.updateWebhook, {
    load: loadWebhook,
    run: async ({ sql, loaded, body, header, request, actor }) => {
      const { url, events, filters, secret, status } = body
      if ([url, events, filters, secret, status].every((member) => member === undefined))
        throw invalid({
          field: 'body',
          message: 'url, events, filters, secret or status is required',
          code: 'required',
        })
      if (url !== undefined) checkUrl(egress, url)
      const row = await sql.begin(async (tx) => {
        const before = await lockWebhook(tx, loaded.id)
        requireMatch(request.headers['if-match'], timeRevision(before))
        const replacing = another(secret, before)
        const changed = await changeWebhook(tx, before, {
          url,
          status,
          events: events && unique(events),
          filters: filters === null ? {} : filters,
          secret: replacing,
        })
        await recordAudit(tx, actor, {
          action: 'webhook.updated',
          target: changed.id,
          before: audited(before),
          after: audited(changed),
          detail: replacing && { is_secret_changed: true },
        })
        if (changed.status === 'disabled') {
          await makeDue(tx, [loaded.id])
          await giveUpPending(tx, loaded.id)
        }
        return changed
      }, 'forceIndexPlan')
      header('etag', etag(timeRevision(row)))
      return row
    },
  })

  handle(app, http, operations.deleteWebhook, {
    load: loadWebhook,
    run: async ({ sql, loaded, request, actor }) => {
      await sql.begin(async (tx) => {
        const before = await lockWebhook(tx, loaded.id)
        requireMatch(request.headers['if-match'], timeRevision(before))
        await deleteWebhook(tx, loaded.id)
        await recordAudit(tx, actor, { action: 'webhook.deleted', target: loaded.id, before: audited(before) })
      })
      return { message: 'Webhook deleted', webhook_id: loaded.id }
    },
  })

  handle(app, http, operations.rotateWebhookSecret, {
    load: loadWebhook,
    run: async ({ sql, loaded, body, header, request, actor }) => {
      const made = body.secret === undefined ? newSecret() : undefined
      const row = await sql.begin(async (tx) => {
        const before = await lockWebhook(tx, loaded.id)
        requireMatch(request.headers['if-match'], timeRevision(before))
        const secret = another(made ?? body.secret, before)
        // The current secret was given again, as by a retry after a lost response: nothing to do.
        if (!secret) return before
        const changed = await changeWebhook(tx, before, { secret })
        const { previous_secret_expires_at } = changed
        const detail = { previous_secret_expires_at }
        await recordAudit(tx, actor, { action: 'webhook.secret_rotated', target: loaded.id, detail })
        return changed
      })
      header('etag', etag(timeRevision(row)))
      return {
        message: 'Secret rotated',
        webhook_id: row.id,
        ...(made === undefined ? {} : { secret: made }),
        previous_secret_expires_at: row.previous_secret_expires_at,
        updated_at: row.updated_at,
      }
    },
  })
}

/** A webhook as the audit log compares it: what people set, without the state of its deliveries. */
function audited({ id, url, events, filters, status, disabled_reason, created_at }: WebhookRow) {
  return { id, url, events, filters, status, disabled_reason, created_at }
}

function loadWebhook({ sql, params, principal }: Loading): Promise<WebhookRow> {
  return requireWebhook(sql, params.webhook_id!, principal)
}

/** Checks an address like deliveries do, except for the IP addresses of its name (decisions D92, D104). */
function checkUrl(egress: Egress, url: string): void {
  try {
    egress.check(url, 'webhook')
  } catch (error) {
    if (!(error instanceof EgressRefused)) throw error
    throw invalid({ field: 'url', message: error.message, code: 'invalid_format' })
  }
}

/** Removes duplicates, in the order of the first occurrences. */
function unique(events: readonly string[]): string[] {
  return [...new Set(events)]
}

function newSecret(): string {
  return `whsec_${randomBytes(secretLength_bytes).toString('base64')}`
}

function tooMany() {
  const max = bounds.webhooks_per_organization
  return invalid({
    field: 'webhooks',
    message: `are too many: an organization may have at most ${max}`,
    code: 'out_of_range',
    max,
  })
}
