import type { FastifyRequest } from 'fastify'
import type { sendTaskMessage } from '#contract/tasks/task-actions.ts'
import type { createTask } from '#contract/tasks/tasks.ts'
import type { Context } from '../../context.ts'
import type { TaskRow } from '../../engine/commands/stored-task.ts'
import { receiveUrls, urlsIn, urlsOf, type NamedUrl, type ReceivedUrls } from '../../engine/files/input-files.ts'
import type { Handlers } from '../../http/handle.ts'
import { makeLoadAsked, type AskedAgent } from './asked-agents.ts'
import { loadTask } from './task-requests.ts'

const none: ReceivedUrls = new Map()

/** What a body has that gives a picture by a URL: looked for before a body is read a second time. */
const mark = Buffer.from('"url"')

/** Takes the pictures that come with requests for tasks and messages, before their transactions. */
export function makeTaskFiles({ database, files, egress }: Context) {
  const loadAsked = makeLoadAsked(database)
  const all = new WeakMap<FastifyRequest, ReceivedUrls>()

  const mayHaveUrls = ({ body }: FastifyRequest): boolean => (body as Buffer | undefined)?.includes(mark) ?? false
  const take = async (
    request: FastifyRequest,
    whose: { project_id: number; created_by: string },
    urls: readonly NamedUrl[],
  ) => {
    const received = await receiveUrls({ files, egress }, whose, urls)
    if (received.size === 0) return undefined
    all.set(request, received)
    return {
      async release() {
        // Those that became the task's are complete, and left alone.
        if (!all.has(request)) return
        for (const file of received.values()) await files.discard(file)
      },
    }
  }

  const receive: Handlers<typeof createTask, AskedAgent>['receive'] = async (loading, validated) => {
    const { request, principal } = loading
    if (!mayHaveUrls(request)) return undefined
    const { project_id } = await loadAsked(loading)
    return take(request, { project_id, created_by: principal.user_id }, urlsIn(validated().body.input))
  }

  const receiveMessage: Handlers<typeof sendTaskMessage, TaskRow>['receive'] = async (loading, validated) => {
    const { request, principal } = loading
    if (!mayHaveUrls(request)) return undefined
    const { project_id } = await loadTask(loading)
    return take(request, { project_id, created_by: principal.user_id }, urlsOf(validated().body.content))
  }

  return {
    loadAsked,
    receive,
    receiveMessage,
    /** The pictures of a request. */
    received: (request: FastifyRequest): ReceivedUrls => all.get(request) ?? none,
    /** Notes that they are the task's now. */
    kept: (request: FastifyRequest): void => void all.delete(request),
  }
}
