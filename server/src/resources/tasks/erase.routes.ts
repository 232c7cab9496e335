import type { FastifyInstance } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import * as operations from '#contract/tasks/tasks.ts'
import type { Actor } from '#contract/accounts/audit.ts'
import type { Context } from '../../context.ts'
import { recordAudits } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { forgetAnswers } from '../../http/idempotency.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { countByMetadata, findByMetadata, lockTree, removeTasks } from './erase.queries.ts'
import { loadTask } from './task-requests.ts'

/** Maximum number of trees per transaction. */
const treesMax = 50

/** Routes that erase tasks: one with its tree, or all with given metadata. */
export function eraseRoutes(app: FastifyInstance, http: HttpContext, { secrets }: Context): void {
  handle(app, http, operations.deleteTask, {
    load: loadTask,
    run: ({ sql, loaded: { id, project_id }, principal: { org_id }, actor }) =>
      sql.begin(async (tx) => {
        const erased = await eraseTree(tx, secrets, { id, project_id, org_id }, actor)
        if (erased === 'missing') throw notFound('task_not_found', 'task', id)
        if (erased === 'open')
          throw new Problem(
            'resource_conflict',
            { resource_type: 'task', resource_id: id, conflicting_field: 'status' },
            { message: 'The task, or one that it delegated, has not ended. Cancel it first.' },
          )
        return { message: 'Task erased', task_id: id }
      }),
  })

  handle(app, http, operations.eraseTasks, {
    load: ({ sql, params, principal }: Loading) => requireProject(sql, params.project_id!, principal),
    run: async ({ sql, loaded: { id: project_id }, body: { metadata }, principal: { org_id }, actor }) => {
      const ids = await findByMetadata(sql, { project_id, metadata, limit: bounds.erased_tasks })
      let erased = 0
      for (let at = 0; at < ids.length; at += treesMax)
        await sql.begin(async (tx) => {
          for (const id of ids.slice(at, at + treesMax)) {
            const became = await eraseTree(tx, secrets, { id, project_id, org_id }, actor)
            if (typeof became === 'number') erased += became
          }
        })
      return { erased, remaining: await countByMetadata(sql, { project_id, metadata }) }
    },
  })
}

/**
 * Erases a task with all tasks below it, with an audit log entry for each. Returns the number of tasks, or why none
 * was erased.
 */
async function eraseTree(
  tx: Sql,
  secrets: Secrets,
  { id, project_id, org_id }: { id: string; project_id: number; org_id: string },
  actor: Actor,
): Promise<number | 'missing' | 'open'> {
  const tree = await lockTree(tx, id)
  if (tree.length === 0) return 'missing'
  if (tree.some(({ is_open }) => is_open)) return 'open'
  const ids = tree.map((task) => task.id)
  await forgetAnswers(tx, secrets, ids)
  await removeTasks(tx, { ids, org_id })
  await recordAudits(
    tx,
    ids.map((target) => ({ actor, entry: { action: 'task.erased' as const, target, project_id } })),
  )
  return ids.length
}
