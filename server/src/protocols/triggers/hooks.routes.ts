import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isObject } from '#contract/core/merge-patch.ts'
import { codeOf, Problem } from '#contract/core/problems.ts'
import { roleAllows } from '#contract/core/scopes.ts'
import { receiveDelivery } from '#contract/doors/hooks.ts'
import { sourceDefinitions } from '#contract/doors/trigger-sources.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { actorOf } from '../../http/access/actor.ts'
import { countSubject } from '../../http/access/rate-limit.ts'
import { Answer, handle } from '../../http/handle.ts'
import { userAgentOf } from '../../http/access/user-agent.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { newId } from '../../platform/ids.ts'
import { isAddress } from './proofs.ts'
import { readBody } from './read-body.ts'
import { judgeDelivery, takeDelivery, type Delivery } from './take-delivery.ts'
import { findByAddress, noteError, noteRefusal, triggerNotFound, type FoundTrigger } from './triggers.queries.ts'
import { isNear, verify, type Received } from './verify.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Where other systems deliver: without a credential of the service, so every check is this file's. */
export function hookRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { sql, secrets } = context
  const { sql: count_sql, rates } = http.authentication

  handle(app, http, receiveDelivery, {
    run: async ({ params, request, request_id, header }) => {
      const trigger = await findTrigger(context, params.secret!)
      const received = receivedOf(request)
      const expected = {
        source: trigger.source,
        hmac: trigger.hmac,
        secrets: [trigger.secret, trigger.previous_secret]
          .filter((one) => one !== null)
          .map((one) => secrets.decrypt(secretLabels.trigger, one, trigger.id)),
      }
      const refusal = verify(expected, received, Date.now())
      if (refusal !== undefined) throw await refuse(context, http, trigger, request, refusal)
      for (const [name, value] of Object.entries(await countSubject(count_sql, rates, 'triggers.receive', trigger.id)))
        header(name, value)
      const delivery = await parsed(trigger, received)
      const { sent_at, status } = sourceDefinitions[trigger.source]
      const sent = isObject(delivery.parsed) ? delivery.parsed[sent_at ?? ''] : undefined
      if (sent_at !== undefined && !isNear(sent, Date.now()))
        throw await refuse(context, http, trigger, request, `${sent_at} does not say that it was sent just now.`)
      if (trigger.source === 'slack' && isObject(delivery.parsed) && delivery.parsed['type'] === 'url_verification')
        return new Answer(200, { challenge: delivery.parsed['challenge'] })
      const by = {
        ...{ user_id: trigger.created_by, credential_id: trigger.id, request_id },
        client: userAgentOf(received, openaiBounds.client),
      }
      try {
        requireOwner(trigger)
        const taking = { isAgain: false }
        await judgeDelivery(sql, trigger, delivery, taking)
        const taken = await sql.begin((tx) => takeDelivery(tx, context, trigger, delivery, by, taking))
        const { delivery_id, task_id, status: became } = taken
        return new Answer(status, { delivery_id, task_id, status: became })
      } catch (error) {
        if (error instanceof Problem && error.status !== 404)
          await noteError(sql, trigger.id, { code: codeOf(error), message: error.message })
        throw error instanceof Problem && error.kind === 'agent_not_running' ? agentStopped(error) : error
      }
    },
  })
}

/** The trigger of an address. One that is malformed and one that is unknown are the same. */
async function findTrigger({ sql }: Context, secret: string): Promise<FoundTrigger> {
  const trigger = isAddress(secret) ? await findByAddress(sql, hashOf(secret)) : undefined
  // What was asked for may be a part of an address, which is a secret.
  if (!trigger) throw triggerNotFound('')
  return trigger
}

/** Counts a request that did not prove itself and gives the problem that answers it; nothing else of it is kept. */
async function refuse(
  { sql }: Context,
  { authentication: { sql: count_sql, rates } }: HttpContext,
  trigger: FoundTrigger,
  request: FastifyRequest,
  message: string,
): Promise<Problem> {
  // In a separate window: forged requests must not keep genuine ones out, nor the database busy.
  await countSubject(count_sql, rates, 'triggers.receive', `${trigger.id} refused`)
  await sql.begin(async (tx) => {
    if (!(await noteRefusal(tx, trigger.id))) return
    const actor = { ...actorOf(request), org_id: trigger.org_id }
    const { id: target, project_id } = trigger
    await recordAudit(tx, actor, { action: 'trigger.refused', target, project_id, detail: { reason: message } })
  })
  return new Problem('unauthorized', undefined, { message })
}

/** A trigger acts for its owner, and for no longer than the owner may give tasks. */
function requireOwner({ role }: FoundTrigger): void {
  if (role !== null && roleAllows(role, 'tasks:write')) return
  throw new Problem('insufficient_permissions', undefined, {
    message: 'The owner of the trigger may not give agents tasks any more.',
  })
}

/** How long a sender is asked to wait for an agent that takes no tasks. */
const stopped_seconds = 60

/** A conflict is the sender's fault, and few send again after one; a service that is unavailable is tried again by all. */
function agentStopped({ details, message }: Problem): Problem {
  const retry_after = stopped_seconds
  return new Problem(
    'service_unavailable',
    { ...(details as object), retry_after },
    { message, members: { retry_after }, headers: { 'retry-after': String(retry_after) } },
  )
}

function receivedOf(request: FastifyRequest): Received {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value
  if (request.content_type !== undefined) headers['content-type'] = request.content_type
  return { headers, body: (request.body as Buffer | undefined) ?? Buffer.alloc(0) }
}

async function parsed({ source }: FoundTrigger, received: Received): Promise<Delivery> {
  return { ...received, id: newId('tdlv'), parsed: await readBody(source, received) }
}
