import type { FastifyInstance } from 'fastify'
import { Problem } from '#contract/core/problems.ts'
import * as operations from '#contract/tasks/threads.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { listThreadMessages } from './thread-messages.queries.ts'
import { deleteThread, insertThread, listThreads, requireThread, threadView } from './threads.queries.ts'

/** Routes of threads. */
export function threadRoutes(app: FastifyInstance, http: HttpContext): void {
  handle(app, http, operations.createThread, {
    load: loadProject,
    run: async ({ sql, loaded, body: { agent_id, metadata = {} }, principal }) =>
      threadView(await insertThread(sql, { project_id: loaded.id, agent_id, metadata, created_by: principal.user_id })),
  })

  handle(app, http, operations.listThreads, {
    load: loadProject,
    run: async ({ sql, loaded, query: { agent_id, limit, offset } }) => {
      const { threads, total } = await listThreads(sql, { project_id: loaded.id, agent_id, limit, offset })
      return { threads: threads.map(threadView), pagination: offsetPagination(total, limit, offset, threads.length) }
    },
  })

  handle(app, http, operations.getThread, { load: loadThread, run: async ({ loaded }) => threadView(loaded) })

  handle(app, http, operations.deleteThread, {
    load: loadThread,
    run: async ({ sql, loaded, actor }) => {
      const deleted = await sql.begin(async (tx) => {
        const removed = await deleteThread(tx, loaded)
        if (removed) {
          const { id: target, project_id } = loaded
          await recordAudit(tx, actor, { action: 'thread.deleted', target, project_id, before: threadView(loaded) })
        }
        return removed
      })
      if (!deleted) {
        // The thread was deleted in the meantime, or it is busy.
        const { id } = await requireThread(sql, loaded)
        throw new Problem('thread_busy', { resource_type: 'thread', resource_id: id, current_status: 'busy' })
      }
      return { message: 'Thread deleted', thread_id: loaded.id }
    },
  })

  handle(app, http, operations.listThreadMessages, {
    load: loadThread,
    run: async ({ sql, loaded, query: { limit, offset } }) => {
      const { messages, total } = await listThreadMessages(sql, loaded.id, { limit, offset })
      return { messages, pagination: offsetPagination(total, limit, offset, messages.length) }
    },
  })
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadThread(loading: Loading) {
  const { id } = await loadProject(loading)
  return requireThread(loading.sql, { id: loading.params.thread_id!, project_id: id })
}
