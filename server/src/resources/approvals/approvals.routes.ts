import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/tasks/approvals.ts'
import { invalid, type Issue } from '#contract/core/problems.ts'
import type { ApprovalKind } from '#contract/tasks/task-lifecycle.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import type { Context } from '../../context.ts'
import { findApproval } from '../../engine/journal/approvals.queries.ts'
import { judgeValue } from '../../engine/tools/schemas/schema-judge.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { listApprovals, requireApproval } from './approvals.queries.ts'

/** Routes of approvals. */
export function approvalRoutes(app: FastifyInstance, http: HttpContext, { engine }: Context): void {
  handle(app, http, operations.listApprovals, {
    load: loadProject,
    run: async ({ sql, loaded, query: { limit, offset, ...filter } }) => {
      const { approvals, total } = await listApprovals(sql, { ...filter, project_id: loaded.id, limit, offset })
      return { approvals, pagination: offsetPagination(total, limit, offset, approvals.length) }
    },
  })

  handle(app, http, operations.getApproval, {
    load: loadApproval,
    run: async ({ loaded }) => loaded.approval,
  })

  handle(app, http, operations.resolveApproval, {
    load: loadApproval,
    receive: async (loading, validated, given) => {
      if (!isObject(given) || given['arguments'] === undefined) return undefined
      const { body } = validated()
      const { approval, project_id } = await loadApproval(loading)
      const parameters = (await findApproval(loading.sql, approval.id))?.parameters
      // Users wrote the schema, so validation may be slow and runs in the schema thread.
      if (parameters) await judgeValue(parameters, body.arguments, { org_id: loading.principal.org_id, project_id })
      return undefined
    },
    run: async ({ sql, loaded: { approval, project_id }, body, principal, actor }) => {
      const { decision, arguments: edited, result, reason = null } = body
      requireFitting(approval.kind, body)
      return sql.begin(async (tx) => {
        await engine.resolveApproval(tx, approval.id, {
          decision,
          arguments: edited,
          result,
          reason,
          user_id: principal.user_id,
        })
        await recordAudit(tx, actor, {
          action: 'approval.resolved',
          target: approval.id,
          project_id,
          detail: {
            decision,
            kind: approval.kind,
            task_id: approval.task_id,
            tool: approval.tool,
            is_edited: edited !== undefined,
            has_result: result !== undefined,
          },
        })
        return requireApproval(tx, { id: approval.id, project_id })
      })
    },
  })
}

/** Throws 400 if a decision has members that its kind of approval does not allow. */
function requireFitting(
  kind: ApprovalKind,
  body: { decision: 'approve' | 'reject'; arguments?: unknown; result?: string },
): void {
  const issues: Issue[] = []
  if (body.arguments !== undefined && (kind !== 'tool_call' || body.decision !== 'approve')) {
    issues.push({
      field: 'arguments',
      message: 'is allowed only to approve an approval of kind tool_call',
      code: 'invalid_format',
    })
  }
  if (body.result !== undefined && (kind !== 'recovery' || body.decision !== 'approve')) {
    issues.push({
      field: 'result',
      message: 'is allowed only to approve an approval of kind recovery',
      code: 'invalid_format',
    })
  }
  const [first, ...others] = issues
  if (first) throw invalid(first, ...others)
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadApproval(loading: Loading) {
  const { id: project_id } = await loadProject(loading)
  return {
    project_id,
    approval: await requireApproval(loading.sql, { id: loading.params.approval_id!, project_id }),
  }
}
