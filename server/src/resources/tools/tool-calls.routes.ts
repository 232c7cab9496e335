import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/tools/tool-calls.ts'
import type { Actor } from '#contract/accounts/audit.ts'
import { bounds } from '#contract/core/limits.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { leaseRefused, type ToolCallAnswer } from '../../engine/commands/answer-tool-calls.ts'
import { isOurs, leaseHash } from '../../engine/dispatch/lease-tokens.ts'
import { extendLease } from '../../engine/journal/tool-calls.queries.ts'
import { judgeValue } from '../../engine/tools/schemas/schema-judge.ts'
import { resultIssues } from '../../engine/tools/data-schema.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { untilClosed } from '../../http/connection/until-closed.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { requireResult } from '../../http/validation.ts'
import { requireProject } from '../projects/projects.queries.ts'
import {
  findResultSchema,
  idempotencyKey,
  listToolCallPage,
  requireToolCall,
  toolCallView,
} from './tool-calls.queries.ts'

/** Routes of calls of client tools: claim with a lease, heartbeat, and one result. */
export function toolCallRoutes(
  app: FastifyInstance,
  http: HttpContext,
  { engine, secrets, sql: ownSql }: Context,
): void {
  /**
   * Records a lease token that this service did not issue as a possible attack. The caller gets the same error as for
   * an expired lease.
   */
  const noteForged = async (
    error: unknown,
    lease: string | undefined,
    at: { id: string; project_id: number },
    actor: Actor,
  ) => {
    if (lease === undefined || !(error instanceof Problem) || isOurs(secrets, 'tool call lease', lease)) return
    const { id: target, project_id } = at
    await recordAudit(ownSql, actor, {
      action: 'tool_call.refused',
      target,
      project_id,
      detail: { reason: 'forged_lease' },
    })
  }

  handle(app, http, operations.claimToolCall, {
    load: loadProject,
    run: async ({ body, occupy }) => {
      if (body.wait) await occupy()
      return new Answer(204, undefined)
    },
    finish: async ({ loaded, body, principal }, _answer, reply) => {
      const { tools: names, lease_seconds = bounds.lease_seconds_default, wait = 0 } = body
      const claimed = await engine.toolCalls.claim({
        project_id: loaded.id,
        names,
        lease_seconds,
        user_id: principal.user_id,
        wait_ms: wait * 1000,
        signal: untilClosed(reply),
      })
      if (!claimed) return new Answer(204, undefined)
      const { id, task_id, agent_id, name, arguments: args, attempt, token, until } = claimed
      const idempotency_key = idempotencyKey(claimed)
      const lease = { token, until }
      return new Answer(200, {
        tool_call: { id, task_id, agent_id, name, arguments: args, idempotency_key, attempt, lease },
      })
    },
  })

  handle(app, http, operations.listToolCalls, {
    load: loadProject,
    run: async ({ sql, loaded, query: { limit, offset, ...filter } }) => {
      const { calls, total } = await listToolCallPage(sql, { ...filter, project_id: loaded.id, limit, offset })
      return { tool_calls: calls.map(toolCallView), pagination: offsetPagination(total, limit, offset, calls.length) }
    },
  })

  handle(app, http, operations.getToolCall, {
    load: loadCall,
    run: async ({ loaded }) => toolCallView(loaded.call),
  })

  handle(app, http, operations.extendToolCall, {
    load: loadCall,
    run: async ({ sql, loaded: { call, project_id }, body, actor }) => {
      const until = await extendLease(sql, { id: call.id, lease_hash: leaseHash(body.lease) })
      if (until !== undefined) return { until }
      const refusal = leaseRefused(await requireToolCall(sql, { id: call.id, project_id }))
      await noteForged(refusal, body.lease, { id: call.id, project_id }, actor)
      throw refusal
    },
  })

  handle(app, http, operations.resolveToolCall, {
    load: loadCall,
    run: async ({ sql, loaded: { call, project_id }, body, principal, actor }) => {
      requireResult(body)
      const { output, error, lease } = body
      const answer: ToolCallAnswer = {
        call,
        user_id: principal.user_id,
        content: error ? error.message : textOf(output),
        ...(error && { is_error: true, error_code: error.code }),
        ...(lease !== undefined && { lease_hash: leaseHash(lease) }),
      }
      if (!error) {
        const schema = await findResultSchema(sql, { project_id, task_id: call.task_id, name: call.name })
        if (schema) await judgeValue(schema, output, { org_id: principal.org_id, project_id })
        const issues = schema ? resultIssues(schema, output) : []
        if (issues.length > 0) throw new Problem('invalid_tool_result', issues)
      }
      const resolved = sql.begin(async (tx) => {
        await engine.answerToolCalls(tx, call.task_id, [answer])
        await recordAudit(tx, actor, {
          action: 'tool_call.resolved',
          target: call.id,
          project_id,
          detail: {
            tool: call.name,
            task_id: call.task_id,
            is_error: error !== undefined,
            has_lease: lease !== undefined,
          },
        })
        return toolCallView(await requireToolCall(tx, { id: call.id, project_id }))
      })
      return resolved.catch(async (problem: unknown) => {
        await noteForged(problem, lease, { id: call.id, project_id }, actor)
        throw problem
      })
    },
  })
}

/** The result for the model: a text unchanged, anything else as JSON. */
function textOf(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadCall(loading: Loading) {
  const { id: project_id } = await loadProject(loading)
  return { project_id, call: await requireToolCall(loading.sql, { id: loading.params.tool_call_id!, project_id }) }
}
