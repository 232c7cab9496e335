import type { FastifyInstance } from 'fastify'
import { invalid } from '#contract/problems.ts'
import { createWebhook } from '#contract/webhooks.ts'
import type { Context } from '../../context.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { EgressRefused } from '../../platform/safe-fetch.ts'
import { newId } from '../../platform/ids.ts'
import { insertWebhook } from './webhooks.queries.ts'

/** Registration of webhooks (spec 4.5, decision D92). */
export function webhookRoutes(app: FastifyInstance, http: HttpContext, { egress, secrets }: Context): void {
  handle(app, http, createWebhook, {
    run: async ({ sql, principal, body }) => {
      try {
        egress.check(body.url, 'webhook')
      } catch (error) {
        if (!(error instanceof EgressRefused)) throw error
        throw invalid({ field: 'url', message: error.message, code: 'invalid_format' })
      }
      const id = newId('wh')
      return insertWebhook(sql, {
        id,
        org_id: principal.org_id,
        url: body.url,
        events: [...new Set(body.events)],
        filters: body.filters ?? {},
        secret: secrets.encrypt('webhook-secret', body.secret, id),
        created_by: principal.user_id,
      })
    },
  })
}
