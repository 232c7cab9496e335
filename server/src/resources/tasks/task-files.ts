import type { FastifyRequest } from 'fastify'
import { bounds } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { Problem } from '#contract/core/problems.ts'
import type { sendTaskMessage } from '#contract/tasks/task-actions.ts'
import type { createTask, createTaskBatch } from '#contract/tasks/tasks.ts'
import type { Context } from '../../context.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import { receiveUrls, urlsIn, urlsOf, type NamedUrl, type ReceivedUrls } from '../../engine/files/input-files.ts'
import { judgeValue } from '../../engine/tools/schemas/schema-judge.ts'
import type { Handlers, Loading } from '../../http/handle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { requireVersion } from '../agents/agent-versions.queries.ts'
import { makeLoadAsked, type AskedAgent } from './asked-agents.ts'
import { loadTask } from './task-requests.ts'

const none: ReceivedUrls = new Map()

/** Occurs in bodies with images by URL; a cheap check before the body is parsed again. */
const mark = Buffer.from('"url"')

/** Work before the transactions that create tasks and messages: fetching images, and validating typed inputs. */
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
        // Files that became the task's stay.
        if (!all.has(request)) return
        for (const file of received.values()) await files.discard(file)
      },
    }
  }

  const receive: Handlers<typeof createTask, AskedAgent>['receive'] = async (loading, validated, given) => {
    const { request, principal } = loading
    const isTyped = isObject(given) && isObject(given['input'])
    const hasUrls = mayHaveUrls(request)
    if (!isTyped && !hasUrls) return undefined
    const asked = await loadAsked(loading)
    if (isTyped) await judgeInputs(loading, asked, [{ ...validated().body }])
    if (!hasUrls) return undefined
    return take(
      request,
      { project_id: asked.project_id, created_by: principal.user_id },
      urlsIn(validated().body.input),
    )
  }

  const receiveMessage: Handlers<typeof sendTaskMessage, TaskRow>['receive'] = async (loading, validated) => {
    const { request, principal } = loading
    if (!mayHaveUrls(request)) return undefined
    const { project_id } = await loadTask(loading)
    return take(request, { project_id, created_by: principal.user_id }, urlsOf(validated().body.content))
  }

  const receiveBatch: Handlers<typeof createTaskBatch, AskedAgent>['receive'] = async (loading, _validated, given) => {
    const tasks =
      isObject(given) && Array.isArray(given['tasks']) ? (given['tasks'] as unknown[]).slice(0, bounds.batch_tasks) : []
    const typed = tasks.filter((one) => isObject(one)).filter(({ input }) => isObject(input))
    if (typed.length > 0) await judgeInputs(loading, await loadAsked(loading), typed)
    return undefined
  }

  return {
    loadAsked,
    receiveBatch,
    receive,
    receiveMessage,
    /** The fetched images of a request. */
    received: (request: FastifyRequest): ReceivedUrls => all.get(request) ?? none,
    /** Marks them as taken by the task. */
    kept: (request: FastifyRequest): void => void all.delete(request),
  }
}

/**
 * Validates inputs in the schema thread, outside of a transaction, because users wrote the schemas and validation may
 * be slow.
 */
async function judgeInputs(
  { sql, principal: { org_id } }: Loading,
  { id, project_id, version, config }: AskedAgent,
  tasks: readonly Record<string, unknown>[],
): Promise<void> {
  const configs = new Map<unknown, Record<string, unknown>>([[version, config]])
  for (const { input, agent_version = version } of tasks) {
    if (!configs.has(agent_version)) configs.set(agent_version, await configOf(sql, id, agent_version))
    const schema = configs.get(agent_version)!['input_schema']
    if (schema !== undefined) await judgeValue(schema, input, { org_id, project_id })
  }
}

/** The configuration of a version; empty for an unknown version, which is refused later. */
async function configOf(sql: Sql, agent_id: string, version: unknown): Promise<Record<string, unknown>> {
  try {
    return (await requireVersion(sql, agent_id, String(version))).config
  } catch (error) {
    if (error instanceof Problem) return {}
    throw error
  }
}
