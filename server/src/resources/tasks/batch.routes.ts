import type { FastifyInstance } from 'fastify'
import { isObject } from '#contract/core/merge-patch.ts'
import type { BodyOf } from '#contract/core/operation.ts'
import { invalid, notFound, Problem, summarize } from '#contract/core/problems.ts'
import { createTask, createTaskBatch } from '#contract/tasks/tasks.ts'
import type { Context } from '../../context.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { urlsIn } from '../../engine/files/input-files.ts'
import { renderProblem } from '../../http/error-formats.ts'
import { handle, type Handling } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { withoutNulls } from '../../http/read-request.ts'
import { unknownInBody } from '../../http/unknown/unknown-members.ts'
import { check } from '../../http/validation.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { AskedAgent } from './asked-agents.ts'
import { makeTaskFiles } from './task-files.ts'
import { requireAskedAccepting } from './task-requests.ts'
import { requireMade, taskView } from './tasks.queries.ts'

type Asked = Handling<typeof createTask, AskedAgent>

/**
 * Route that creates many tasks with one request and separate results. `askedFor` makes a task of a body or throws
 * its problem.
 */
export function batchRoutes(
  app: FastifyInstance,
  http: HttpContext,
  context: Context,
  askedFor: (handling: Asked) => Promise<NewTask>,
): void {
  const { engine } = context
  const { loadAsked, receiveBatch } = makeTaskFiles(context)

  handle(app, http, createTaskBatch, {
    load: loadAsked,
    receive: receiveBatch,
    run: async (handling) => {
      const { body, loaded, request_id } = handling
      requireAskedAccepting(loaded)
      const asked: (NewTask | Problem)[] = []
      for (const one of body.tasks) asked.push(await taskOf(handling, one).catch(problemOf))
      const tasks = asked.filter((one): one is NewTask => !(one instanceof Problem))
      const made = await handling.sql.begin((tx) => store(tx, tasks))
      const results = asked.map((one) => {
        const became = one instanceof Problem ? one : made.get(one.id)!
        if (!(became instanceof Problem)) return { status: 201, task: taskView(became) }
        const { status, body: answer } = renderProblem(became, 'agents', request_id)
        const { code, message, details } = (answer as { error: { code: string; message: string; details?: unknown } })
          .error
        return { status, error: { code, message, ...(details === undefined ? {} : { details }) } }
      })
      return { results }
    },
  })

  async function taskOf(handling: Handling<typeof createTaskBatch, AskedAgent>, given: unknown): Promise<NewTask> {
    // As in a separate request, null means absent.
    const one = isObject(given) ? withoutNulls(createTask.body, given) : given
    const issues = [...unknownInBody(createTask, one), ...check(createTask.body, one)]
    if (issues.length > 0) throw new Problem('validation_error', issues, { message: summarize(issues) })
    const body = one as BodyOf<typeof createTask>
    if (urlsIn(body.input).length > 0)
      throw invalid({
        field: 'input',
        message: 'has an image by URL, which a batch does not accept. Upload the image and use its file_id',
        code: 'invalid_format',
      })
    // The body of this task replaces the body of the request.
    return askedFor({ ...handling, body, query: {} })
  }

  /** Stores tasks in one transaction; a refused task leaves nothing behind. */
  async function store(tx: Sql, tasks: readonly NewTask[]): Promise<Map<string, TaskRow | Problem>> {
    const made = new Map<string, TaskRow | Problem>()
    const ordinary = tasks.filter((task) => engine.mayShare(task))
    const rows = ordinary.length > 0 ? await engine.createAll(tx, ordinary) : []
    ordinary.forEach(({ id }, i) => made.set(id, rows[i]!))
    for (const task of tasks) {
      if (made.has(task.id)) continue
      const stored = await tx
        .begin(async (inner) => {
          await engine.enqueue(inner, task)
          const missing = notFound('agent_not_found', 'agent', task.agent.id)
          return requireMade(inner, { id: task.id, project_id: task.agent.project_id }, missing)
        })
        .catch(problemOf)
      made.set(task.id, stored)
    }
    return made
  }
}

function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error
  throw error
}
