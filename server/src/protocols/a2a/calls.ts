import { TaskState, taskStateFromJSON, type ListTasksResponse, type Task } from '@a2a-js/sdk'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { a2aBounds, type A2aMethod } from '#contract/doors/a2a.ts'
import { parseTimestamp } from '#contract/core/timestamps.ts'
import { projectId } from '#contract/core/project-id.ts'
import { notFound } from '#contract/core/problems.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import type { Context } from '../../context.ts'
import type { Loading } from '../../http/handle.ts'
import { isId } from '../../platform/ids.ts'
import { makeLoadAsked } from '../../resources/tasks/asked-agents.ts'
import { cancelAsAsked } from '../../resources/tasks/task-requests.ts'
import type { DoorFiles } from '../door-files.ts'
import { findDoorAgent, findDoorThreads, type DoorAgent } from '../door-keys.queries.ts'
import { countA2aTasks, findA2aTask, listA2aTasks, type A2aTask, type A2aTaskFilter } from './a2a-tasks.queries.ts'
import { camelCased } from './camel-case.ts'
import { a2aConfig, cardOf } from './card.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import { openMessage, type OpenedMessage } from './open-message.ts'
import { a2aProblem, badMember, taskNotFound } from './problems.ts'
import { deletePush, listPushes } from './push-configs.queries.ts'
import { pushView, storePush } from './push-configs.ts'
import { readHistoryLength, readPush, readSend, refuseTenant, requireText } from './read-message.ts'
import { lastOf, taskOfRow } from './task-state.ts'
import { readTask, type StreamStart } from './task-streams.ts'

/** What a call has done, and how it is answered. */
export type Done =
  | { kind: 'result'; value: unknown }
  /** A task that the response waits for if `waits`. */
  | ({ kind: 'message'; waits: boolean; historyLength: number | undefined } & OpenedMessage)
  | { kind: 'canceled'; task_id: string }
  | { kind: 'stream'; task_id: string; start: StreamStart }

type Params = Record<string, unknown>
type Call = (loading: Loading, agent: DoorAgent, params: Params) => Promise<Done>

/** The agent of a path if it is published to A2A; throws 404 otherwise. */
export async function requirePublished(sql: Loading['sql'], id: string, org_id: string | null): Promise<DoorAgent> {
  const agent = isId('agent', id) ? await findDoorAgent(sql, id, org_id) : undefined
  if (!agent || !a2aConfig(agent.config).published) throw notFound('agent_not_found', 'agent', id.slice(0, 100))
  return agent
}

/** A task of an agent; throws `task_not_found` if it does not exist. */
export async function requireA2aTask(sql: Loading['sql'], agent: DoorAgent, id: string): Promise<A2aTask> {
  const row = await findA2aTask(sql, agent.id, id)
  if (!row) throw taskNotFound(id)
  return row
}

/** The implementation of each method, for both bindings. */
export function makeCalls(context: Context, doorFiles: DoorFiles): Record<A2aMethod, Call> {
  const { engine, public_url } = context
  const loadAsked = makeLoadAsked(context.database)

  const open = async (loading: Loading, agent: DoorAgent, params: Params, isStream: boolean): Promise<Done> => {
    const asked = readSend(params)
    const files = doorFiles.of(loading.request)
    const waits = isStream || !asked.returnImmediately
    if (waits) await loading.occupy()
    const path = { project_id: projectId(agent.project_id), agent_id: agent.id }
    const askedAgent = await loadAsked({ ...loading, params: path })
    await judgeInput(askedAgent.config, asked.data ?? asked.text, { ...agent, ...loading.principal })
    const opened = await loading.sql.begin((tx) =>
      openMessage(tx, context, { ...loading, sql: tx }, askedAgent, { ...asked, files }),
    )
    if (!isStream) return { kind: 'message', waits, historyLength: asked.historyLength, ...opened }
    return { kind: 'stream', task_id: opened.task_id, start: opened }
  }
  const task = ({ sql }: Loading, agent: DoorAgent, params: Params, name = 'id'): Promise<A2aTask> => {
    refuseTenant(params)
    return requireA2aTask(sql, agent, requireText(params, name))
  }
  const result = (value: unknown): Done => ({ kind: 'result', value })

  return {
    SendMessage: (loading, agent, params) => open(loading, agent, params, false),
    SendStreamingMessage: (loading, agent, params) => open(loading, agent, params, true),
    async GetTask(loading, agent, params) {
      const historyLength = readHistoryLength(params['historyLength'])
      const state = await readTask(context, await task(loading, agent, params))
      return result(state.task({ historyLength }))
    },
    async ListTasks(loading, agent, params) {
      refuseTenant(params)
      return result(await listed(context, loading, agent, params))
    },
    async CancelTask(loading, agent, params) {
      const { id, project_id, status } = await task(loading, agent, params)
      const ended = a2aProblem('TASK_NOT_CANCELABLE', `Task ${id} has ended.`, 'task_already_finished')
      if (isFinished(status)) throw ended
      const request = { reason: null, mode: 'graceful', user_id: loading.principal.user_id } as const
      const { outcome } = await cancelAsAsked(loading.sql, engine, loading.actor, { id, project_id }, request)
      if (outcome === 'missing') throw taskNotFound(id)
      if (outcome === 'finished') throw ended
      return { kind: 'canceled', task_id: id }
    },
    async SubscribeToTask(loading, agent, params) {
      const { id, status } = await task(loading, agent, params)
      const after = lastEventId(loading)
      if (after === undefined && isFinished(status))
        throw a2aProblem('UNSUPPORTED_OPERATION', `Task ${id} has ended. Read it, or send Last-Event-ID.`)
      await loading.occupy()
      return { kind: 'stream', task_id: id, start: after === undefined ? 'now' : { after } }
    },
    async CreateTaskPushNotificationConfig(loading, agent, params) {
      const { id: task_id } = await task(loading, agent, params, 'taskId')
      const asked = readPush(params, 'config')
      const { org_id, user_id: created_by } = loading.principal
      const config = await loading.sql.begin((tx) => storePush(tx, context, { org_id, task_id, created_by }, asked))
      return result(config)
    },
    async GetTaskPushNotificationConfig(loading, agent, params) {
      const { id: task_id } = await task(loading, agent, params, 'taskId')
      const id = requireText(params, 'id')
      const found = (await listPushes(loading.sql, task_id)).find(({ config_id }) => config_id === id)
      if (!found) throw noConfig(id)
      return result(pushView(found))
    },
    async ListTaskPushNotificationConfigs(loading, agent, params) {
      const { id: task_id } = await task(loading, agent, params, 'taskId')
      const configs = (await listPushes(loading.sql, task_id)).map(pushView)
      return result({ configs, nextPageToken: '' })
    },
    async DeleteTaskPushNotificationConfig(loading, agent, params) {
      const { id: task_id } = await task(loading, agent, params, 'taskId')
      await deletePush(loading.sql, task_id, requireText(params, 'id'))
      return result(null)
    },
    async GetExtendedAgentCard(_loading, agent, params) {
      refuseTenant(params)
      return result(cardOf(agent, public_url(), { extended: true }))
    },
  }
}

function noConfig(id: string) {
  return a2aProblem('TASK_NOT_FOUND', `The task has no configuration ${id.slice(0, 100)}.`, 'task_not_found')
}

/** The id of the last frame that the client received. */
function lastEventId({ request }: Loading): number | undefined {
  const header = request.headers['last-event-id']
  if (header === undefined || header === '') return undefined
  const number = typeof header === 'string' && /^\d{1,15}$/.test(header) ? Number(header) : undefined
  if (number === undefined) throw badMember('Last-Event-ID', 'must be the id of an event of this task')
  return number
}

/** The token of the next page: the position of the last task of this one. */
function tokenOf(at: string, id: string): string {
  return Buffer.from(JSON.stringify([at, id])).toString('base64url')
}

function readToken(token: unknown): { at: string; id: string } {
  try {
    if (typeof token !== 'string') throw new TypeError('a token is a text')
    const [at, id] = JSON.parse(Buffer.from(token, 'base64url').toString()) as [unknown, unknown]
    const position = typeof at === 'string' ? parseTimestamp(at) : undefined
    if (position !== undefined && typeof id === 'string' && isId('task', id)) return { at: position, id }
  } catch {
    // The token was not created by `tokenOf`.
  }
  throw badMember('pageToken', 'must be the nextPageToken of an earlier response')
}

async function listed(
  context: Context,
  loading: Loading,
  agent: DoorAgent,
  params: Params,
): Promise<ListTasksResponse> {
  const { contextId, status, pageSize, pageToken, statusTimestampAfter, includeArtifacts } = params
  const size = pageSize === undefined || pageSize === null ? a2aBounds.page_limit_default : pageSize
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 1 || size > a2aBounds.page_limit)
    throw badMember('pageSize', `must be a whole number from 1 to ${a2aBounds.page_limit}`)
  const historyLength = readHistoryLength(params['historyLength'])
  if (includeArtifacts !== undefined && includeArtifacts !== null && typeof includeArtifacts !== 'boolean')
    throw badMember('includeArtifacts', 'must be true or false')
  const filter: A2aTaskFilter = {
    agent_id: agent.id,
    thread_ids: await threadsOf(loading, agent, contextId),
    ...statusesOf(status),
    after: readTime(statusTimestampAfter),
    cursor: isNothing(pageToken) ? undefined : readToken(pageToken),
    limit: size + 1,
  }
  const rows = await listA2aTasks(loading.sql, filter)
  const page = rows.slice(0, size)
  const last = page.at(-1)
  return {
    tasks: await Promise.all(
      page.map((row) => entryOf(context, row, { historyLength, artifacts: includeArtifacts === true })),
    ),
    nextPageToken: rows.length > size && last ? tokenOf(last.status_at, last.id) : '',
    pageSize: page.length,
    totalSize: await countA2aTasks(loading.sql, filter, a2aBounds.counted),
  }
}

/** A task of a list. Its journal is read only if the history was requested. */
async function entryOf(
  context: Context,
  row: A2aTask & { status_at: string },
  { historyLength = 0, artifacts }: { historyLength: number | undefined; artifacts: boolean },
): Promise<Task> {
  const entry = taskOfRow(row, { artifacts })
  if (historyLength === 0) return entry
  const { history } = (await readTask(context, row)).task()
  return { ...entry, history: lastOf(history, historyLength) }
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

async function threadsOf(
  { sql, principal }: Loading,
  agent: DoorAgent,
  contextId: unknown,
): Promise<string[] | undefined> {
  if (isNothing(contextId)) return undefined
  if (typeof contextId !== 'string') throw badMember('contextId', 'must be a text')
  const named = await findDoorThreads(sql, 'a2a', principal.org_id, contextId)
  return [contextId, ...named.flatMap(({ agent_id, thread_id }) => (agent_id === agent.id ? [thread_id] : []))]
}

function readTime(value: unknown): string | undefined {
  if (isNothing(value)) return undefined
  const time = typeof value === 'string' ? parseTimestamp(value) : undefined
  if (time === undefined) throw badMember('statusTimestampAfter', 'must be a time by RFC 3339')
  return time
}

const approvalWaits = ['approval', 'unknown_outcome']

/** The task states and wait reasons of a state of the protocol. */
function statusesOf(given: unknown): Pick<A2aTaskFilter, 'statuses' | 'waits'> {
  const none = { statuses: undefined, waits: undefined }
  if (isNothing(given)) return none
  const state = taskStateFromJSON(given)
  switch (state) {
    case TaskState.TASK_STATE_UNSPECIFIED:
      return none
    case TaskState.TASK_STATE_SUBMITTED:
      return { statuses: ['queued'], waits: undefined }
    case TaskState.TASK_STATE_WORKING:
      return { statuses: ['running'], waits: { reasons: [...approvalWaits, 'input'], among: false } }
    case TaskState.TASK_STATE_INPUT_REQUIRED:
      return { statuses: [], waits: { reasons: ['input'], among: true } }
    case TaskState.TASK_STATE_AUTH_REQUIRED:
      return { statuses: [], waits: { reasons: approvalWaits, among: true } }
    case TaskState.TASK_STATE_COMPLETED:
      return { statuses: ['completed'], waits: undefined }
    case TaskState.TASK_STATE_FAILED:
      return { statuses: ['failed', 'expired'], waits: undefined }
    case TaskState.TASK_STATE_CANCELED:
      return { statuses: ['canceled'], waits: undefined }
    case TaskState.TASK_STATE_REJECTED:
      return { statuses: [], waits: undefined }
    default:
      throw badMember('status', 'must be a state of tasks, such as TASK_STATE_COMPLETED')
  }
}

/** Parameters of a call with camel-case names; throws if they are not an object. */
export function paramsOf(params: unknown): Params {
  if (!isObject(params)) throw badMember('params', 'must be an object')
  return camelCased(params) as Params
}
