import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/doors/trigger-deliveries.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { newId } from '../../platform/ids.ts'
import { cleanText } from '../../platform/clean-text.ts'
import { listDeliveries, requireDelivery, type DeliveryRow, type WholeDelivery } from './deliveries.queries.ts'
import { readBody } from './read-body.ts'
import { markOf, renderInput } from './render.ts'
import { decide, judgeDelivery, takeDelivery, type Delivery, type TakenBy } from './take-delivery.ts'
import { loadTrigger } from './triggers.routes.ts'
import type { TriggerRow } from './triggers.queries.ts'

/** Deliveries of triggers, and new ones by hand. */
export function triggerDeliveryRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  handle(app, http, operations.testTrigger, {
    load: loadTrigger,
    run: async (handling) => {
      const { sql, loaded, body, actor } = handling
      const delivery = await sampleOf(loaded, body)
      if (body.preview) return { ...wouldBe(loaded, delivery), delivery_id: null, task_id: null }
      const taking = { isAgain: true, is_test: true }
      await judgeDelivery(sql, loaded, delivery, taking)
      return sql.begin(async (tx) => {
        const taken = await takeDelivery(tx, context, loaded, delivery, byCaller(handling), taking)
        const { delivery_id, task_id, status, decided, input } = taken
        const detail = { delivery_id, task_id }
        const { id: target, project_id } = loaded
        await recordAudit(tx, actor, { action: 'trigger.tested', target, project_id, detail })
        return { delivery_id, task_id, status, reason: decided.reason, input, thread_key: decided.thread_key }
      })
    },
  })

  handle(app, http, operations.listTriggerDeliveries, {
    load: loadTrigger,
    run: async ({ sql, loaded, query: { status, limit, offset } }) => {
      const { deliveries, total } = await listDeliveries(sql, { trigger_id: loaded.id, status, limit, offset })
      return { deliveries, pagination: offsetPagination(total, limit, offset, deliveries.length) }
    },
  })

  handle(app, http, operations.getTriggerDelivery, {
    load: loadDelivery,
    run: async ({ loaded: { delivery } }) => wholeView(delivery),
  })

  handle(app, http, operations.replayTriggerDelivery, {
    load: loadDelivery,
    run: async (handling) => {
      const { sql, loaded, actor } = handling
      const { trigger, delivery: earlier } = loaded
      const { headers, body } = earlier
      const delivery = { headers, body, id: newId('tdlv'), parsed: await readBody(trigger.source, { headers, body }) }
      const taking = { isAgain: true, replay_of: earlier.id }
      await judgeDelivery(sql, trigger, delivery, taking)
      return sql.begin(async (tx) => {
        const taken = await takeDelivery(tx, context, trigger, delivery, byCaller(handling), taking)
        const { delivery_id, task_id, status } = taken
        const { id: target, project_id } = trigger
        const detail = { replay_of: earlier.id, delivery_id, task_id }
        await recordAudit(tx, actor, { action: 'trigger.replayed', target, project_id, detail })
        return { delivery_id, task_id, status }
      })
    },
  })
}

/** A sample as its source would have sent it; an e-mail may be one as it came. */
async function sampleOf(
  { source }: TriggerRow,
  { sample, headers = {} }: { sample: unknown; headers?: Record<string, string> | undefined },
): Promise<Delivery> {
  const isMessage = source === 'email' && typeof sample === 'string'
  const body = Buffer.from(isMessage ? sample : JSON.stringify(sample))
  const lower = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const all = { 'content-type': isMessage ? 'message/rfc822' : 'application/json', ...lower }
  const parsed = isMessage ? await readBody(source, { headers: all, body }) : sample
  return { id: newId('tdlv'), headers: all, body, parsed }
}

function wouldBe(trigger: TriggerRow, delivery: Delivery) {
  const { reason, view, thread_key } = decide(trigger, delivery, { isAgain: true })
  const status = reason === null ? 'accepted' : 'filtered'
  const input = reason === null ? renderInput(trigger.input, view, markOf(delivery.id)) : null
  return { status, reason, input, thread_key }
}

function byCaller({ principal, request_id, request }: Loading): TakenBy {
  const { user_id, credential_id } = principal
  return { user_id, credential_id, request_id, client: userAgentOf(request, openaiBounds.client) }
}

function wholeView({ body, headers, ...row }: WholeDelivery): DeliveryRow & { headers: object; payload: string } {
  return { ...row, headers, payload: cleanText(new TextDecoder().decode(body)) }
}

async function loadDelivery(loading: Loading): Promise<{ trigger: TriggerRow; delivery: WholeDelivery }> {
  const trigger = await loadTrigger(loading)
  const id = loading.params.delivery_id!
  return { trigger, delivery: await requireDelivery(loading.sql, { id, trigger_id: trigger.id }) }
}
