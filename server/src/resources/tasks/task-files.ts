import type { FastifyRequest } from 'fastify'
import type { createTask } from '#contract/tasks/tasks.ts'
import type { Context } from '../../context.ts'
import { receiveUrls, type ReceivedUrls } from '../../engine/files/input-files.ts'
import type { Handlers } from '../../http/handle.ts'
import { makeLoadAsked, type AskedAgent } from './asked-agents.ts'

const none: ReceivedUrls = new Map()

/** What a body has that gives a picture by a URL: looked for before a body is read a second time. */
const mark = Buffer.from('"url"')

/** Takes the pictures that come with requests for tasks, before their transactions. */
export function makeTaskFiles({ database, files, egress }: Context) {
  const loadAsked = makeLoadAsked(database)
  const all = new WeakMap<FastifyRequest, ReceivedUrls>()

  const receive: Handlers<typeof createTask, AskedAgent>['receive'] = async (loading, validated) => {
    const { request, principal } = loading
    if (!(request.body as Buffer | undefined)?.includes(mark)) return undefined
    const { project_id } = await loadAsked(loading)
    const { body } = validated()
    const received = await receiveUrls({ files, egress }, { project_id, created_by: principal.user_id }, body.input)
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

  return {
    loadAsked,
    receive,
    /** The pictures of a request. */
    received: (request: FastifyRequest): ReceivedUrls => all.get(request) ?? none,
    /** Notes that they are the task's now. */
    kept: (request: FastifyRequest): void => void all.delete(request),
  }
}
