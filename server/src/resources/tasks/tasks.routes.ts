import type { FastifyInstance } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import * as operations from '#contract/tasks/tasks.ts'
import type { Context } from '../../context.ts'
import { Answer, handle, type Handling, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { cutPage, isIdKey, keyOf } from '../../http/lists/cursor.ts'
import { offsetCursorPagination, offsetPagination, timestamp } from '../../http/lists/pagination.ts'
import { inputIssues, schemaIssues } from '../../engine/tools/data-schema.ts'
import { ownMetadata, type NewTask } from '../../engine/commands/new-task.ts'
import { newId } from '../../platform/ids.ts'
import { requireVersion } from '../agents/agent-versions.queries.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { requireInputFiles, withFiles, type ReceivedUrls } from '../../engine/files/input-files.ts'
import type { AskedAgent } from './asked-agents.ts'
import { batchRoutes } from './batch.routes.ts'
import { eraseRoutes } from './erase.routes.ts'
import { agentToolNames, callerTool, taskToolIssues } from './task-tools.ts'
import { makeTaskFiles } from './task-files.ts'
import { cancelAsAsked, loadTask, madeBy, requireAskedAccepting } from './task-requests.ts'
import {
  listArtifacts,
  listEventPage,
  listTasks,
  listTree,
  listTaskSteps,
  requireMade,
  requireTask,
  taskView,
  type TaskFilter,
} from './tasks.queries.ts'
import { lastEventId, makeWatch, occupyToWatch } from './watch.ts'

/** Routes of tasks. */
export function taskRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { engine } = context
  const watch = makeWatch(context)

  const { loadAsked, receive, received, kept } = makeTaskFiles(context)

  handle(app, http, operations.createTask, {
    loadsEarly: true,
    load: loadAsked,
    receive,
    run: async (handling) => {
      const { sql, loaded: agent } = handling
      requireAskedAccepting(agent)
      await occupyToWatch(handling)
      const task = await askedFor(handling, received(handling.request))
      if (!sql.isTransaction) {
        const row = await watch.making(handling.request, task.id, () => engine.create(task))
        kept(handling.request)
        return taskView(row)
      }
      await engine.enqueue(sql, task)
      sql.afterCommit(() => kept(handling.request))
      const missing = notFound('agent_not_found', 'agent', agent.id)
      return taskView(await requireMade(sql, { id: task.id, project_id: agent.project_id }, missing))
    },
    shared: {
      prepare: async (handling): Promise<NewTask | undefined> => {
        requireAskedAccepting(handling.loaded)
        const task = await askedFor(handling, received(handling.request))
        if (!engine.mayShare(task)) return undefined
        await occupyToWatch(handling)
        return task
      },
      work: async (tx, tasks: readonly NewTask[]) =>
        (await engine.createAll(tx, tasks)).map((row) => (row instanceof Problem ? row : taskView(row))),
    },
    finish: watch.created,
  })

  batchRoutes(app, http, context, (handling) => askedFor(handling, new Map()))
  eraseRoutes(app, http, context)

  handle(app, http, operations.listAgentTasks, {
    load: loadAgent,
    run: (handling) => page(handling, { project_id: handling.loaded.project_id, agent_id: handling.loaded.id }),
  })
  handle(app, http, operations.listTasks, {
    load: loadProject,
    run: (handling) => page(handling, { project_id: handling.loaded.id }),
  })

  handle(app, http, operations.getTask, {
    load: loadTask,
    run: async ({ loaded }) => taskView(loaded),
    finish: watch.waited,
  })

  handle(app, http, operations.getTaskTree, {
    load: loadTask,
    run: async ({ sql, loaded }) => ({ task: treeOf(await listTree(sql, loaded.id)) }),
  })

  handle(app, http, operations.cancelTask, {
    load: loadTask,
    run: async ({ sql, loaded, body, principal, actor }) => {
      const request = { reason: body.reason ?? null, mode: body.mode ?? 'graceful', user_id: principal.user_id }
      const result = await cancelAsAsked(sql, engine, actor, loaded, request)
      if (result.outcome === 'missing') return requireTask(sql, { id: loaded.id, project_id: loaded.project_id })
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
    run: async ({ sql, loaded, query: { limit, offset } }) => {
      const { steps, total } = await listTaskSteps(sql, loaded.id, { limit, offset })
      return { steps, pagination: offsetPagination(total, limit, offset, steps.length) }
    },
  })
  handle(app, http, operations.listTaskArtifacts, {
    load: loadTask,
    run: async ({ sql, loaded }) => ({ artifacts: await listArtifacts(sql, loaded.id) }),
  })
  handle(app, http, operations.listTaskEventsOperation, {
    load: loadTask,
    run: async ({ sql, loaded, query: { limit, offset, cursor } }) => {
      const after = keyOf(cursor, isSequence) ?? offset
      const { events: read, total } = await listEventPage(sql, loaded.id, { limit: limit + 1, after })
      const { entries: events, next_cursor } = cutPage(read, limit, ({ sequence }) => sequence)
      return { events, pagination: offsetCursorPagination(total, limit, offset, next_cursor) }
    },
  })
  handle(app, http, operations.streamTaskEvents, {
    load: loadTask,
    run: ({ occupy }) => occupy(),
    finish: ({ loaded, query, request }, _answer, reply) =>
      watch.stream(reply, loaded, lastEventId(request) ?? query.offset ?? 0, 200),
  })
}

/**
 * The task to create for a request. Throws 404 for an unknown version of the agent, and 400 for an invalid schema or
 * an input that does not match the agent's version.
 */
async function askedFor(
  handling: Handling<typeof operations.createTask, AskedAgent>,
  received: ReceivedUrls,
): Promise<NewTask> {
  const { sql, loaded, body } = handling
  const { agent_version = loaded.version, tools, ...asked } = body
  const { config } = agent_version === loaded.version ? loaded : await requireVersion(sql, loaded.id, agent_version)
  const [first, ...others] = [
    ...inputIssues(config['input_schema'], body.input),
    ...schemaIssues('output_schema', body.output_schema),
    ...(tools ? taskToolIssues(await agentToolNames(sql, loaded.project_id, config), tools) : []),
  ]
  if (first) throw invalid(first, ...others)
  await requireInputFiles(sql, loaded.project_id, body.input)
  const agent = { ...loaded, version: agent_version }
  const input = withFiles(body.input, received)
  const of = { ...madeBy(handling), id: newId('task'), agent, run_after: timestamp(body.run_after) }
  const caller = tools ? { caller: { tools: tools.map(callerTool) } } : {}
  const metadata = body.metadata && { metadata: ownMetadata(body.metadata) }
  return { ...asked, ...of, ...caller, ...metadata, input, received: [...received.values()] }
}

/** Builds nested nodes from the rows of a tree, which has parents before children. */
function treeOf(rows: Awaited<ReturnType<typeof listTree>>): operations.TaskNode | undefined {
  const nodes = new Map<string, operations.TaskNode>()
  let root: operations.TaskNode | undefined
  for (const { parent_task_id, ...row } of rows) {
    const node = { ...row, children: [] }
    nodes.set(row.id, node)
    root ??= node
    if (node !== root) nodes.get(parent_task_id ?? '')?.children.push(node)
  }
  return root
}

async function page(
  { sql, query }: Pick<Handling<typeof operations.listTasks, unknown>, 'sql' | 'query'>,
  of: Pick<TaskFilter, 'project_id' | 'agent_id'>,
) {
  const { cursor, limit, offset, ...filter } = query
  const after_id = keyOf(cursor, isIdKey('task'))
  const { tasks: read, total } = await listTasks(sql, {
    ...{ ...filter, ...of },
    created_after: timestamp(query.created_after),
    created_before: timestamp(query.created_before),
    finished_after: timestamp(query.finished_after),
    finished_before: timestamp(query.finished_before),
    ...{ after_id, limit: limit + 1, offset },
  })
  const { entries, next_cursor } = cutPage(read, limit, ({ id }) => id)
  return { tasks: entries.map(taskView), pagination: offsetCursorPagination(total, limit, offset, next_cursor) }
}

const isSequence = (key: unknown): key is number =>
  Number.isInteger(key) && Number(key) >= 0 && Number(key) <= bounds.offset

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadAgent(loading: Loading) {
  const project = await loadProject(loading)
  return requireAgent(loading.sql, { id: loading.params.agent_id!, project_id: project.id })
}
