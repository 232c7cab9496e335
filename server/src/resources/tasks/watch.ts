import type { FastifyReply, FastifyRequest } from 'fastify'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Context } from '../../context.ts'
import { awaitTask, recordMaking, streamTask, type FreshTask } from '../../events/streams/streams.ts'
import { untilClosed } from '../../http/connection/until-closed.ts'
import { Answer, type Loading } from '../../http/handle.ts'
import { Batcher } from '../../platform/batcher.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { findTask, findTasks, rests, taskView, type TaskKey } from './tasks.queries.ts'

/**
 * Maximum number of tasks per read. Tasks that end with one commit wake their callers together, which then share a
 * statement.
 */
const groupMax = 100
const concurrency = 2

/** The parts of a request that watches a task. */
interface Watching extends Pick<Loading, 'occupy'> {
  loaded: TaskKey
  query: { wait?: number }
}

/** The parts of a request that creates and watches a task. */
interface Creating extends Pick<Loading, 'occupy' | 'request'> {
  query: { wait?: number }
}

/** Lets requests wait for a task or stream it. */
export interface Watch {
  /**
   * The response after a task was created: its stream if `Accept` requests it, or else the task, after `?wait=` if
   * given.
   */
  created(
    handling: Creating & { loaded: { project_id: number } },
    answer: Answer,
    reply: FastifyReply,
  ): Promise<Answer | undefined>
  /** Waits until the task has finished or waits for something, or `?wait=` is over, and returns the task. */
  waited(handling: Watching, answer: Answer, reply: FastifyReply): Promise<Answer>
  /**
   * Creates a task. If the caller will stream it, records its events from then on, so that the stream starts without
   * reading them.
   */
  making(request: FastifyRequest, task_id: string, make: () => Promise<TaskRow>): Promise<TaskRow>
  /** Takes over the connection and sends the headers that were set on the reply. */
  stream(reply: FastifyReply, key: TaskKey, after: number, status: number): Promise<undefined>
}

export function makeWatch({ sql, engine, database }: Pick<Context, 'sql' | 'engine' | 'database'>): Watch {
  const reads = new Batcher<TaskKey, TaskRow | undefined>((keys) => findTasks(database.indexed, keys), {
    concurrency,
    groupMax,
    waitMax_ms: database.settings.connectionTimeoutMillis!,
  })
  const made = new WeakMap<FastifyRequest, FreshTask & { end: () => void }>()
  const streamFrom = async (
    reply: FastifyReply,
    key: TaskKey,
    { after, status, fresh }: { after: number; status: number; fresh?: FreshTask | undefined },
  ): Promise<undefined> => {
    const headers = reply.getHeaders() as Record<string, string>
    reply.hijack()
    const snapshot = async () => {
      const row = await findTask(sql, key)
      return row && { task: taskView(row), status: row.status, last_sequence: row.last_sequence }
    }
    await streamTask(reply.raw, { hub: engine.hub, sql, task_id: key.id, after, headers, status, snapshot, fresh })
  }
  const stream: Watch['stream'] = (reply, key, after, status) => streamFrom(reply, key, { after, status })

  const making: Watch['making'] = async (request, task_id, make) => {
    if (!wantsStream(request)) return make()
    const { row, take, end } = await recordMaking(engine.hub, task_id, make)
    made.set(request, { snapshot: { task: taskView(row), status: row.status, last_sequence: 1 }, take, end })
    return row
  }

  const waited: Watch['waited'] = async (watching, answer, reply) => {
    if (!watching.query.wait) return answer
    await watching.occupy()
    return waitFor(watching, answer, reply, false)
  }

  const waitFor = async (
    { loaded: key, query }: Watching,
    answer: Answer,
    reply: FastifyReply,
    isNew: boolean,
  ): Promise<Answer> => {
    if (!query.wait) return answer
    let row = undefined as TaskRow | undefined
    await awaitTask(engine.hub, key.id, {
      timeout_ms: query.wait * 1000,
      signal: untilClosed(reply),
      isNew,
      settled: async (finished) => {
        row = (finished as TaskRow | undefined) ?? (await reads.submit(key))
        return !row || isFinished(row.status) || (row.status === 'waiting' && (await rests(sql, key.id)))
      },
    })
    // The wait is over, and nothing has happened to the task.
    if (isNew) row ??= await reads.submit(key)
    // The agent was deleted in the meantime, so the earlier body is returned.
    return new Answer(answer.status, row ? taskView(row) : answer.body)
  }

  return {
    stream,
    making,
    waited,
    async created(handling, answer, reply) {
      const { loaded, query, request, occupy } = handling
      const fresh = made.get(request)
      try {
        // For a repeated request, whose task already exists; for any other this happened before the creation.
        await occupyToWatch(handling)
        const key = { id: (answer.body as { id: string }).id, project_id: loaded.project_id }
        if (wantsStream(request)) return await streamFrom(reply, key, { after: 0, status: answer.status, fresh })
        const isNew = reply.getHeader('idempotency-replayed') === undefined
        return await waitFor({ loaded: key, query, occupy }, answer, reply, isNew)
      } finally {
        fresh?.end()
      }
    },
  }
}

/** Takes a stream slot before a task is created, so that a caller who may not watch it is refused first. */
export async function occupyToWatch({ query, request, occupy }: Creating): Promise<void> {
  if (query.wait || wantsStream(request)) await occupy()
}

function wantsStream({ headers }: FastifyRequest): boolean {
  return /(^|[,\s])text\/event-stream($|[;,\s])/i.test(headers.accept ?? '')
}

/** The last sequence number that the client received; an invalid header counts as absent. */
export function lastEventId({ headers }: FastifyRequest): number | undefined {
  const id = headers['last-event-id']
  return typeof id === 'string' && /^\d{1,9}$/.test(id) ? Number(id) : undefined
}
