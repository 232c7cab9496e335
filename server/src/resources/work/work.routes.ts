import type { FastifyInstance } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { Problem } from '#contract/core/problems.ts'
import * as operations from '#contract/tasks/work.ts'
import type { Context } from '../../context.ts'
import type { Ended } from '../../engine/remote/endings.ts'
import type { Lease } from '../../engine/remote/lease.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { untilClosed } from '../../http/connection/until-closed.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { requireResult } from '../../http/validation.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { pageOfSteps, requireTask, type TaskStepRow, taskView } from '../tasks/tasks.queries.ts'
import { requireLease } from './leases.queries.ts'

/** Most steps in the response of a claim; a task cannot have more. */
const journalMax = 10_000

/** Tasks of remote agents: claimed with a lease, kept by heartbeats, journaled step by step, ended once. */
export function workRoutes(app: FastifyInstance, http: HttpContext, { engine, sql: ownSql }: Context): void {
  const { work } = engine

  handle(app, http, operations.claimWork, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: async ({ body, principal, occupy }) => {
      const closed = body.queues.filter((queue) => principal.queues && !principal.queues.includes(queue))
      if (closed.length > 0)
        throw new Problem('insufficient_permissions', undefined, {
          message: `The API key may not claim from ${closed.join(', ')}; it may claim from ${principal.queues!.join(', ')}.`,
        })
      if (body.wait) await occupy()
      return new Answer(204, undefined)
    },
    finish: async ({ loaded, body, principal }, _answer, reply) => {
      const { queues: names, lease_seconds = bounds.lease_seconds_default, wait = 0, worker = null } = body
      const { user_id, credential_id } = principal
      let shown: Promise<[Awaited<ReturnType<typeof requireTask>>, TaskStepRow[]]> | undefined
      const claimed = await work.claim(
        { project_id: loaded.id, names, lease_seconds, worker, user_id, credential_id },
        {
          wait_ms: wait * 1000,
          signal: untilClosed(reply),
          read: (tx, id, hasSteps) =>
            (shown = Promise.all([
              requireTask(tx, { id, project_id: loaded.id }),
              hasSteps ? pageOfSteps(tx, id, { limit: journalMax, offset: 0 }) : [],
            ])),
        },
      )
      if (!claimed || !shown) return new Answer(204, undefined)
      const { messages, token, attempt, until } = claimed
      const [task, journal] = await shown
      return new Answer(200, { work: { task: taskView(task), messages, journal, lease: { token, attempt, until } } })
    },
  })

  handle(app, http, operations.heartbeatWork, {
    load: requireLease,
    run: async ({ loaded }) => work.heartbeat(loaded),
  })

  handle(app, http, operations.beginWorkStep, {
    load: requireLease,
    run: async ({ loaded, body: { input = {}, safety = 'unsafe', ...step } }) =>
      work.beginStep(loaded, { ...step, input, safety }),
  })

  handle(app, http, operations.finishWorkStep, {
    load: requireLease,
    run: async ({ loaded, params, body }) => {
      requireResult(body)
      return work.finishStep(loaded, params.step_id!, body)
    },
  })

  handle(app, http, operations.recordWorkEvents, {
    load: requireLease,
    run: async ({ loaded, body }) => ({ recorded: await work.publish(loaded, body.events) }),
  })

  handle(app, http, operations.completeWork, {
    load: requireLease,
    run: async ({ loaded, body, actor }) => ended(await work.complete(loaded, body.output), loaded, actor),
  })

  handle(app, http, operations.failWork, {
    load: requireLease,
    run: async ({ loaded, body, actor }) => ended(await work.fail(loaded, body.error), loaded, actor, body.error.code),
  })

  handle(app, http, operations.parkWork, {
    load: requireLease,
    run: async ({ loaded, body }) => work.park(loaded, body),
  })

  /** Audits that a worker ended a task, like the end by a person. */
  async function ended(result: Ended, lease: Lease, actor: Loading['actor'], code?: string): Promise<Ended> {
    const action = result.status === 'completed' ? 'work.completed' : 'work.failed'
    if (result.status === 'waiting') return result
    await recordAudit(ownSql, actor, {
      action,
      target: lease.task_id,
      project_id: lease.project_id,
      detail: { attempt: lease.attempt, status: result.status, ...(code !== undefined && { code }) },
    })
    return result
  }
}
