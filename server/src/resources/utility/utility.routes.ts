import type { FastifyInstance } from 'fastify'
import { getDocs, getStatus, hello } from '#contract/resources/utility.ts'
import type { Context } from '../../context.ts'
import { isBehind } from '../../events/webhooks/webhook-backlog.queries.ts'
import { compressedOnce } from '../../http/encoding/encoding.ts'
import { isKnown } from '../../http/etag.ts'
import { Answer, handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { publishedDocument, publishedTag } from './docs.ts'

/** Greeting, status and document (spec 4.5, decisions D101–D103). */
export function utilityRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  handle(app, http, hello, { run: async ({ query }) => ({ message: `Hello, ${query.name ?? 'World'}!` }) })

  handle(app, http, getStatus, {
    run: async ({ sql }) => {
      const webhooks = (await isBehind(sql)) ? 'behind' : 'ok'
      const workers = context.engine.isSilent() ? 'silent' : 'ok'
      return {
        status: workers === 'ok' && webhooks === 'ok' ? 'operational' : 'degraded',
        version: context.version,
        timestamp: new Date().toISOString(),
        uptime_seconds: Math.floor((Date.now() - context.started_at.getTime()) / 1000),
        checks: { database: 'ok', workers, webhooks },
      }
    },
  })

  void app.register(async (docs) => {
    const compressed = compressedOnce()
    docs.addHook<string>('onSend', async (request, reply, body) =>
      reply.statusCode === 200 ? compressed(request, reply, body) : body,
    )
    handle(docs, http, getDocs, {
      run: async ({ request, header }) => {
        const url = context.public_url()
        const tag = publishedTag(url)
        header('etag', tag)
        header('cache-control', 'no-cache')
        return isKnown(request.headers['if-none-match'], tag) ? new Answer(304, undefined) : publishedDocument(url)
      },
    })
  })
}
