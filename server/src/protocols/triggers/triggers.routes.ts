import type { FastifyInstance } from 'fastify'
import { Webhook } from 'standardwebhooks'
import Type from 'typebox'
import type { Actor } from '#contract/accounts/audit.ts'
import { isObject, mergePatch } from '#contract/core/merge-patch.ts'
import { invalid, type Issue } from '#contract/core/problems.ts'
import { sourceDefinitions, triggerBounds, type TriggerSource } from '#contract/doors/trigger-sources.ts'
import * as operations from '#contract/doors/triggers.ts'
import { MetadataInput, TaskBudget } from '#contract/resources/agents.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { check } from '../../http/validation.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { requireAgent } from '../../resources/agents/agents.queries.ts'
import { requireProject } from '../../resources/projects/projects.queries.ts'
import { badPlace, conditionFault } from './paths.ts'
import { encryptSecret, newAddress, newSecret, urlOf } from './proofs.ts'
import {
  deleteTrigger,
  insertTrigger,
  listTriggers,
  moveTrigger,
  replaceAddress,
  replaceSecret,
  requireTrigger,
  triggerView,
  updateTrigger,
  type TriggerContent,
  type TriggerRow,
} from './triggers.queries.ts'

/** Routes that create, read and change triggers. */
export function triggerRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { secrets } = context

  handle(app, http, operations.listTriggers, {
    load: loadProject,
    run: async ({ sql, loaded, query: { agent_id, status, limit, offset } }) => {
      const { triggers, total } = await listTriggers(sql, { project_id: loaded.id, agent_id, status, limit, offset })
      return {
        triggers: triggers.map(triggerView),
        pagination: offsetPagination(total, limit, offset, triggers.length),
      }
    },
  })

  handle(app, http, operations.createTrigger, {
    load: loadProject,
    run: async ({ sql, loaded, body, principal, actor }) => {
      const {
        id: agent_id,
        project_id,
        config,
      } = await requireAgent(sql, {
        id: body.agent_id,
        project_id: loaded.id,
      })
      const content: TriggerContent = {
        name: (body.name ?? body.source).normalize('NFC'),
        hmac: body.hmac ?? null,
        filter: body.filter ?? [],
        input: body.input ?? null,
        thread_key: body.thread_key ?? null,
        action: body.action ?? 'start',
        dedupe: body.dedupe ?? null,
        priority: body.priority ?? 5,
        timeout_seconds: body.timeout_seconds ?? null,
        budget: body.budget ?? {},
        metadata: body.metadata ?? {},
      }
      requireContent(body.source, content, config)
      const made = requireSecret(body.source, body.secret)
      const id = newId('trig')
      const { address, address_hash } = newAddress()
      const secret = encryptSecret(secrets, made ?? body.secret!, id)
      const trigger = { ...content, id, project_id, agent_id, source: body.source, created_by: principal.user_id }
      return sql.begin(async (tx) => {
        const row = await insertTrigger(tx, { ...trigger, address_hash, secret }, triggerBounds.per_project)
        await recordAudit(tx, actor, { action: 'trigger.created', ...auditKey(row), after: audited(row) })
        return { ...triggerView(row), url: urlOf(context.public_url(), address), ...shown(made) }
      })
    },
  })

  handle(app, http, operations.getTrigger, { load: loadTrigger, run: async ({ loaded }) => triggerView(loaded) })

  handle(app, http, operations.updateTrigger, {
    load: loadTrigger,
    run: ({ sql, loaded, body: { secret, ...body }, actor }) =>
      sql.begin(async (tx) => {
        const before = await requireTrigger(tx, loaded, { lock: true })
        const content = changed(before, body)
        const { config } = await requireAgent(tx, { id: before.agent_id, project_id: before.project_id })
        requireContent(before.source, content, body.input === undefined ? undefined : config)
        await updateTrigger(tx, before, content)
        if (secret !== undefined) {
          requireSecret(before.source, secret)
          const encrypted = encryptSecret(secrets, secret, before.id)
          await replaceSecret(tx, before, encrypted, operations.triggerOverlap_seconds)
        }
        const row = await requireTrigger(tx, before)
        await recordAudit(tx, actor, {
          action: 'trigger.updated',
          ...auditKey(row),
          before: audited(before),
          after: audited(row),
          detail: secret === undefined ? undefined : { is_secret_changed: true },
        })
        return triggerView(row)
      }),
  })

  handle(app, http, operations.deleteTrigger, {
    load: loadTrigger,
    run: ({ sql, loaded, actor }) =>
      sql.begin(async (tx) => {
        const deleted = await deleteTrigger(tx, loaded)
        // A concurrent request may have deleted it.
        if (!deleted) await requireTrigger(tx, loaded)
        else await recordAudit(tx, actor, { action: 'trigger.deleted', ...auditKey(loaded), before: audited(loaded) })
        return { message: 'Trigger deleted', trigger_id: loaded.id }
      }),
  })

  handle(app, http, operations.pauseTrigger, {
    load: loadTrigger,
    run: ({ sql, loaded, actor }) => sql.begin((tx) => move(tx, loaded, 'paused', actor)),
  })
  handle(app, http, operations.resumeTrigger, {
    load: loadTrigger,
    run: ({ sql, loaded, actor }) => sql.begin((tx) => move(tx, loaded, 'active', actor)),
  })

  handle(app, http, operations.rotateTrigger, {
    load: loadTrigger,
    run: ({ sql, loaded, body, actor }) => {
      const { overlap_seconds = operations.triggerOverlap_seconds } = body
      const { address, address_hash } = newAddress()
      const isSenders = sourceDefinitions[loaded.source].secret_given && body.secret === undefined
      const made = isSenders ? undefined : requireSecret(loaded.source, body.secret)
      const secret = made ?? body.secret
      return sql.begin(async (tx) => {
        const before = await requireTrigger(tx, loaded, { lock: true })
        await replaceAddress(tx, before, address_hash, overlap_seconds)
        if (secret !== undefined)
          await replaceSecret(tx, before, encryptSecret(secrets, secret, before.id), overlap_seconds)
        const row = await requireTrigger(tx, before)
        const detail = { is_secret_changed: secret !== undefined, overlap_seconds }
        await recordAudit(tx, actor, { action: 'trigger.rotated', ...auditKey(row), detail })
        return { ...triggerView(row), url: urlOf(context.public_url(), address), ...shown(made) }
      })
    },
  })
}

async function move(tx: Sql, key: TriggerRow, status: TriggerRow['status'], actor: Actor) {
  const before = await requireTrigger(tx, key, { lock: true })
  if (before.status !== status) await moveTrigger(tx, before, status)
  const row = { ...before, status }
  const action = status === 'paused' ? 'trigger.paused' : 'trigger.resumed'
  await recordAudit(tx, actor, { action, ...auditKey(row), before: audited(before), after: audited(row) })
  return { message: status === 'paused' ? 'Trigger paused' : 'Trigger resumed', trigger_id: row.id, status }
}

/** The members of a trigger for the audit log: those that users set, without counts of deliveries. */
function audited(row: TriggerRow) {
  const { id, agent_id, name, status, source, hmac, filter, input, thread_key, action, dedupe } = row
  const { priority, timeout_seconds, budget, metadata, created_by, created_at } = row
  const task = { input, thread_key, action, priority, timeout_seconds, budget, metadata }
  return { id, agent_id, name, status, source, hmac, filter, dedupe, ...task, created_by, created_at }
}

function auditKey({ id, project_id }: TriggerRow) {
  return { target: id, project_id }
}

function shown(secret: string | undefined): { secret?: string } {
  return secret === undefined ? {} : { secret }
}

type Change = { [Key in keyof TriggerContent]?: TriggerContent[Key] | undefined }

const merged = Type.Object({ budget: TaskBudget, metadata: MetadataInput })

/** The content of a trigger after a change. Merged members must respect their bounds as a whole. */
function changed(before: TriggerRow, body: Change): TriggerContent {
  const given = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined)) as Change
  const content = {
    ...before,
    ...given,
    name: (body.name ?? before.name).normalize('NFC'),
    budget: mergePatch(before.budget, body.budget ?? {}) as Record<string, unknown>,
    metadata: mergePatch(before.metadata, body.metadata ?? {}) as Record<string, unknown>,
  }
  const [first, ...others] = check(merged, content)
  if (first) throw invalid(first, ...others)
  return content
}

/** Throws 400 if members of a trigger are inconsistent. With the agent's `config`, the input must also match it. */
function requireContent(
  source: TriggerSource,
  content: TriggerContent,
  config: Record<string, unknown> | undefined,
): void {
  const { hmac, filter, action, thread_key, input } = content
  const issues: Issue[] = []
  const add = (field: string, message: string, code: Issue['code'] = 'invalid_format') =>
    void issues.push({ field, message, code })
  if (source === 'hmac' && !hmac) add('hmac', 'is required for this source', 'required')
  if (hmac && source !== 'hmac' && source !== 'email')
    add('hmac', `is not allowed, because the source ${source} defines it`)
  if (action === 'message' && thread_key === null)
    add('thread_key', 'is required for the action message, because it selects the thread', 'required')
  const bad = (thread_key === null ? undefined : badPlace(thread_key)) ?? undefined
  if (bad !== undefined) add('thread_key', `has an invalid placeholder: ${bad}`)
  const badInput = textsOf(input)
    .map(badPlace)
    .find((found) => found !== undefined)
  if (badInput !== undefined) add('input', `has an invalid placeholder: ${badInput}`)
  filter.forEach((condition, at) => {
    const fault = conditionFault(condition)
    if (fault !== undefined) add(`filter[${at}].value`, fault, condition.value === undefined ? 'required' : undefined)
  })
  if (config) {
    const isTyped = isObject(config['input_schema'])
    if (isTyped && !isObject(input)) add('input', 'must be an object, because the agent has an input_schema')
    if (!isTyped && isObject(input)) add('input', 'must be a text, because the agent has no input_schema')
  }
  const [first, ...others] = issues
  if (first) throw invalid(first, ...others)
}

/** All texts in a template. */
function textsOf(template: unknown): string[] {
  if (typeof template === 'string') return [template]
  return typeof template === 'object' && template !== null ? Object.values(template).flatMap(textsOf) : []
}

/**
 * Returns a new secret if none is given and the service may generate it. Throws 400 if it must be given, or is
 * invalid.
 */
function requireSecret(source: TriggerSource, given: string | undefined): string | undefined {
  if (given === undefined) {
    if (!sourceDefinitions[source].secret_given) return newSecret(source)
    const message = `is required: ${sourceDefinitions[source].sender} creates it and shows it in its settings`
    throw invalid({ field: 'secret', message, code: 'required' })
  }
  if (source === 'standard_webhooks' && !isStandardSecret(given))
    throw invalid({ field: 'secret', message: 'must be whsec_ followed by base64', code: 'invalid_format' })
  return undefined
}

function isStandardSecret(secret: string): boolean {
  try {
    return new Webhook(secret) instanceof Webhook
  } catch {
    return false
  }
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

/** The trigger of a path; throws 404 if it does not exist. */
export async function loadTrigger(loading: Loading): Promise<TriggerRow> {
  const project = await loadProject(loading)
  return requireTrigger(loading.sql, { id: loading.params.trigger_id!, project_id: project.id })
}
