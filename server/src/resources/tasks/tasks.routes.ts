import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { bounds } from '#contract/limits.ts'
import { Problem } from '#contract/problems.ts'
import { agentAcceptsTasks, isFinished } from '#contract/task-lifecycle.ts'
import * as operations from '#contract/tasks.ts'
import type { Context } from '../../context.ts'
import { awaitTask, streamTask } from '../../events/streams.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { moment, offsetPagination } from '../../http/pagination.ts'
import { newId } from '../../platform/ids.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import {
  findTask,
  isQueueFull,
  listEventPage,
  listTasks,
  listTaskSteps,
  requireTask,
  taskView,
  type TaskFilter,
  type TaskKey,
} from './tasks.queries.ts'

const queueRetry_seconds = 10

/** Tasks (tasks 2, 6 and 7). */
export function taskRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { engine, sql } = context

  handle(app, http, operations.createTask, {
    load: loadAgent,
    run: async ({ sql, loaded: agent, body, principal, request, request_id }) => {
      if (!agentAcceptsTasks(agent)) {
        throw new Problem('agent_not_running', {
          resource_type: 'agent',
          resource_id: agent.id,
          current_status: agent.status,
        })
      }
      if (await isQueueFull(sql, agent.id, bounds.queued_tasks)) {
        throw new Problem(
          'queue_full',
          { limit: bounds.queued_tasks, retry_after: queueRetry_seconds },
          {
            members: { retry_after: queueRetry_seconds },
            headers: { 'retry-after': String(queueRetry_seconds) },
          },
        )
      }
      const id = newId('task')
      return sql.begin(async (tx) => {
        await engine.enqueue(tx, {
          ...body,
          id,
          agent,
          run_after: moment(body.run_after),
          created_by: principal.user_id,
          request_id,
          trace_id: traceId(request.headers.traceparent),
        })
        return taskView(await requireTask(tx, { id, project_id: agent.project_id }))
      })
    },
    finish: async ({ loaded: agent, query, request }, answer, reply) => {
      const key = { id: (answer.body as { id: string }).id, project_id: agent.project_id }
      if (wantsStream(request)) return stream(reply, key, 0, answer.status)
      return query.wait ? new Answer(answer.status, await waited(reply, key, query.wait, answer.body)) : answer
    },
  })

  handle(app, http, operations.listAgentTasks, {
    load: loadAgent,
    run: ({ sql, loaded, query }) => page(sql, { project_id: loaded.project_id, agent_id: loaded.id }, query),
  })
  handle(app, http, operations.listTasks, {
    load: loadProject,
    run: ({ sql, loaded, query }) => page(sql, { project_id: loaded.id }, query),
  })

  handle(app, http, operations.getTask, {
    load: loadTask,
    run: async ({ loaded }) => taskView(loaded),
    finish: async ({ loaded, query }, answer, reply) =>
      query.wait ? new Answer(200, await waited(reply, loaded, query.wait, answer.body)) : answer,
  })

  handle(app, http, operations.cancelTask, {
    load: loadTask,
    run: async ({ sql, loaded, body, principal }) => {
      const request = { reason: body.reason ?? null, mode: body.mode ?? 'graceful', user_id: principal.user_id }
      const result = await sql.begin((tx) => engine.cancel(tx, loaded.id, request))
      if (result.outcome === 'missing') return requireTask(sql, { id: '', project_id: loaded.project_id })
      const { outcome, status } = result
      if (outcome === 'finished') {
        throw new Problem('task_already_finished', {
          resource_type: 'task',
          resource_id: loaded.id,
          current_status: status,
        })
      }
      const done = outcome === 'canceled'
      return new Answer(done ? 200 : 202, {
        message: done ? 'Task canceled' : 'Cancellation requested',
        task_id: loaded.id,
        status,
      })
    },
  })

  handle(app, http, operations.listTaskSteps, {
    load: loadTask,
    run: async ({ sql, loaded, query: { limit = 20, offset = 0 } }) => {
      const { steps, total } = await listTaskSteps(sql, loaded.id, { limit, offset })
      return { steps, pagination: offsetPagination(total, limit, offset, steps.length) }
    },
  })
  handle(app, http, operations.listTaskEventsOperation, {
    load: loadTask,
    run: async ({ sql, loaded, query: { limit = 100, offset = 0 } }) => {
      const { events, total } = await listEventPage(sql, loaded.id, { limit, offset })
      return { events, pagination: offsetPagination(total, limit, offset, events.length) }
    },
  })
  handle(app, http, operations.streamTaskEvents, {
    load: loadTask,
    run: async () => undefined,
    finish: ({ loaded, query, request }, _answer, reply) =>
      stream(reply, loaded, lastEventId(request) ?? query.offset ?? 0, 200),
  })

  /** Takes over the connection; what was set on the answer goes out as its headers. */
  async function stream(reply: FastifyReply, key: TaskKey, after: number, status: number): Promise<undefined> {
    const headers = reply.getHeaders() as Record<string, string>
    reply.hijack()
    const snapshot = async () => {
      const row = await findTask(sql, key)
      return row && { task: taskView(row), status: row.status, last_sequence: row.last_sequence }
    }
    await streamTask(reply.raw, { hub: engine.hub, sql, task_id: key.id, after, headers, status, snapshot })
  }

  /** The task once it has finished or waits for something, or as it is when the time is over. */
  async function waited(reply: FastifyReply, key: TaskKey, seconds: number, before: unknown): Promise<unknown> {
    const gone = new AbortController()
    const leave = (): void => gone.abort()
    reply.raw.once('close', leave)
    if (reply.raw.destroyed) leave()
    let row = undefined as Awaited<ReturnType<typeof findTask>>
    await awaitTask(engine.hub, key.id, {
      timeout_ms: seconds * 1000,
      signal: gone.signal,
      settled: async () => {
        row = await findTask(sql, key)
        return !row || isFinished(row.status) || row.status === 'waiting'
      },
    })
    reply.raw.off('close', leave)
    // The agent was deleted meanwhile: what is known is what was answered before.
    return row ? taskView(row) : before
  }
}

async function page(
  sql: Context['sql'],
  of: Pick<TaskFilter, 'project_id' | 'agent_id'>,
  query: Partial<Pick<TaskFilter, 'status' | 'created_after' | 'created_before' | 'sort' | 'limit' | 'offset'>>,
) {
  const { status, sort = '-created_at', limit = 20, offset = 0 } = query
  const created_after = moment(query.created_after)
  const created_before = moment(query.created_before)
  const { tasks, total } = await listTasks(sql, { ...of, status, created_after, created_before, sort, limit, offset })
  return { tasks: tasks.map(taskView), pagination: offsetPagination(total, limit, offset, tasks.length) }
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadAgent(loading: Loading) {
  const project = await loadProject(loading)
  return requireAgent(loading.sql, { id: loading.params.agent_id!, project_id: project.id })
}

async function loadTask(loading: Loading) {
  const project = await loadProject(loading)
  return requireTask(loading.sql, { id: loading.params.task_id!, project_id: project.id })
}

function wantsStream({ headers }: FastifyRequest): boolean {
  return /(^|[,\s])text\/event-stream($|[;,\s])/i.test(headers.accept ?? '')
}

/** The sequence that a reader had last; whatever else it sends is as if it had none. */
function lastEventId({ headers }: FastifyRequest): number | undefined {
  const id = headers['last-event-id']
  return typeof id === 'string' && /^\d{1,9}$/.test(id) ? Number(id) : undefined
}

/** The trace that a request belongs to (W3C Trace Context). */
function traceId(traceparent: string | string[] | undefined): string | null {
  const match = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(String(traceparent))
  return match?.[1] ?? null
}
