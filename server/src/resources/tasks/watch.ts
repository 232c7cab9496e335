import type { FastifyReply, FastifyRequest } from 'fastify'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Context } from '../../context.ts'
import { awaitTask, recordMaking, streamTask, type FreshTask } from '../../events/streams/streams.ts'
import { untilClosed } from '../../http/connection/until-closed.ts'
import { Answer, type Loading } from '../../http/handle.ts'
import { Batcher } from '../../platform/batcher.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { findTask, findTasks, rests, taskView, type TaskKey } from './tasks.queries.ts'

/** Tasks that end with one commit wake their callers at once, who then read them by one statement. */
const groupMax = 100
const concurrency = 2

/** What a request that may watch its task says of it. */
interface Watching extends Pick<Loading, 'occupy'> {
  loaded: TaskKey
  query: { wait?: number }
}

/** What a request that makes a task says of how it watches it. */
interface Creating extends Pick<Loading, 'occupy' | 'request'> {
  query: { wait?: number }
}

/** How requests watch tasks: they wait for one, or their connection becomes its stream. */
export interface Watch {
  /** After a task was made: its stream where `Accept` asks for it, else the task, after `?wait=` where that is said. */
  created(
    handling: Creating & { loaded: { project_id: number } },
    answer: Answer,
    reply: FastifyReply,
  ): Promise<Answer | undefined>
  /** The task once it has finished or waits for something, or as it is when `?wait=` is over. */
  waited(handling: Watching, answer: Answer, reply: FastifyReply): Promise<Answer>
  /**
   * Makes a task, and notes what happens to it from then on where its caller will stream it: its stream then begins without reading.
   */
  making(request: FastifyRequest, task_id: string, make: () => Promise<TaskRow>): Promise<TaskRow>
  /** Takes over the connection; what was set on the answer goes out as its headers. */
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
    // Its time is over, and nothing has happened to it.
    if (isNew) row ??= await reads.submit(key)
    // The agent was deleted meanwhile: what is known is what was answered before.
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
        // Of a repeated request, whose task is there already; of any other this was done before its task was made.
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

/** Called before a task is created: a caller that may not watch it is refused before there is anything to watch. */
export async function occupyToWatch({ query, request, occupy }: Creating): Promise<void> {
  if (query.wait || wantsStream(request)) await occupy()
}

function wantsStream({ headers }: FastifyRequest): boolean {
  return /(^|[,\s])text\/event-stream($|[;,\s])/i.test(headers.accept ?? '')
}

/** The sequence that a reader had last; whatever else it sends is as if it had none. */
export function lastEventId({ headers }: FastifyRequest): number | undefined {
  const id = headers['last-event-id']
  return typeof id === 'string' && /^\d{1,9}$/.test(id) ? Number(id) : undefined
}
