import type { FastifyInstance } from 'fastify'
import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import * as operations from '#contract/tasks/task-actions.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Context } from '../../context.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { copyJournal } from '../../engine/commands/copy-journal.ts'
import { contentWithFiles, filesOf, requireFiles } from '../../engine/files/input-files.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { makeTaskFiles } from './task-files.ts'
import { loadTask, madeBy, requireAccepting } from './task-requests.ts'
import { countSteps, countUnread, queueFull, requireMade, requireTask, taskView } from './tasks.queries.ts'
import { makeWatch, occupyToWatch } from './watch.ts'

const { unread_messages } = operations.taskActionBounds

/** Routes that send messages to tasks and retry them. */
export function taskActionRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { engine } = context
  const { receiveMessage, received, kept } = makeTaskFiles(context)

  handle(app, http, operations.sendTaskMessage, {
    load: loadTask,
    receive: receiveMessage,
    run: ({ sql, loaded: task, body, principal, request }) =>
      sql.begin(async (tx) => {
        await requireFiles(tx, task.project_id, filesOf(body.content))
        const pictures = received(request)
        const sent = await engine.sendMessage(tx, task.id, {
          content: contentWithFiles(body.content, pictures),
          user_id: principal.user_id,
          received: [...pictures.values()],
        })
        // Checked after the engine has locked the task's row, so that two concurrent messages cannot exceed the
        // limit.
        if (sent.outcome === 'sent') {
          if ((await countUnread(tx, task.id)) > unread_messages) throw tooManyUnread()
          tx.afterCommit(() => kept(request))
          return sent.message
        }
        if (sent.outcome !== 'finished') return requireTask(tx, { id: task.id, project_id: task.project_id })
        throw new Problem('task_already_finished', {
          resource_type: 'task',
          resource_id: task.id,
          current_status: sent.status,
        })
      }),
  })

  handle(app, http, operations.retryTask, {
    load: loadTask,
    run: async (handling) => {
      const { sql, loaded: old, body } = handling
      if (!isFinished(old.status)) {
        throw new Problem('resource_conflict', {
          resource_type: 'task',
          resource_id: old.id,
          conflicting_field: 'status',
          conflicting_value: old.status,
        })
      }
      const { from_step = 0 } = body
      await requireStep(sql, old, from_step)
      const agent = await requireAgent(sql, { id: old.agent_id, project_id: old.project_id })
      await requireAccepting(sql, agent, handling.principal)
      await occupyToWatch(handling)
      const id = newId('task')
      return sql.begin(async (tx) => {
        const retry_of = { task_id: old.id, from_step }
        await engine.enqueue(tx, { ...sameAs(old), ...madeBy(handling), id, agent, retry_of })
        await copyJournal(tx, old.id, id, from_step)
        await recordAudit(tx, handling.actor, {
          action: 'task.retried',
          target: old.id,
          project_id: old.project_id,
          detail: { task_id: id, from_step },
        })
        const missing = notFound('task_not_found', 'task', old.id)
        return taskView(await requireMade(tx, { id, project_id: old.project_id }, missing))
      })
    },
    finish: makeWatch(context).created,
  })
}

/** The members that a retry copies from the task; not `run_after`, which applied to the first run. */
function sameAs(old: TaskRow) {
  const { input, thread_id, concurrency_key, priority, queue_ttl_seconds, timeout_seconds } = old
  const { max_attempts, budget, output_schema, metadata } = old
  return {
    input,
    thread_id,
    concurrency_key,
    priority,
    queue_ttl_seconds,
    timeout_seconds,
    max_attempts,
    budget,
    output_schema,
    metadata,
  }
}

/** Throws 400 if `from_step` is beyond the last step. */
async function requireStep(sql: Sql, task: TaskRow, from_step: number): Promise<void> {
  const max = await countSteps(sql, task.id)
  if (from_step <= max) return
  throw invalid({
    field: 'from_step',
    message: `must be between 0 and ${max}, the number of the task's steps`,
    code: 'out_of_range',
    min: 0,
    max,
    provided: from_step,
  })
}

function tooManyUnread(): Problem {
  return queueFull(unread_messages, `The task has ${unread_messages} messages that it has not read yet.`)
}
