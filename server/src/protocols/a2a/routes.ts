import { createHash } from 'node:crypto'
import {
  AgentCard,
  Extensions,
  ListTaskPushNotificationConfigsResponse,
  ListTasksResponse,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
} from '@a2a-js/sdk'
import { JsonRpcTransportHandler, ServerCallContext, type A2ARequestHandler } from '@a2a-js/sdk/server'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import * as operations from '#contract/doors/a2a.ts'
import type { A2aMethod } from '#contract/doors/a2a.ts'
import type { Operation } from '#contract/core/operation.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { notFound } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { untilClosed } from '../../http/connection/until-closed.ts'
import { renderProblem } from '../../http/error-formats.ts'
import { isKnown } from '../../http/etag.ts'
import { toProblem } from '../../http/errors.ts'
import { Answer, handle, handleChosen, type Handling, type Loading, type Served } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { DoorAgent } from '../door-keys.queries.ts'
import { mayResolve } from '../open-segment.ts'
import { makeDoorFiles } from '../door-files.ts'
import { readSend } from './read-message.ts'
import { makeCalls, paramsOf, requireA2aTask, requirePublished, type Done } from './calls.ts'
import { camelCased } from './camel-case.ts'
import { a2aConfig, cardOf } from './card.ts'
import { legacyCard, legacyMethods, readLegacy, answerLegacy } from './legacy.ts'
import { a2aProblem } from './problems.ts'
import { requestHandler } from './request-handler.ts'
import { answerEarly, awaitTask, endsFor, isAtHead, readTask, streamTask, writeEvents } from './task-streams.ts'
import type { A2aTaskState } from './task-state.ts'

/** How long a response waits for a canceled task, whose running call ends first. */
const cancelWait_ms = 5000
const cardAge_seconds = 300

declare module 'fastify' {
  interface FastifyRequest {
    /** The id of a JSON-RPC request. */
    rpc_id?: string | number | null
  }
}

/** How methods are called: with JSON-RPC or REST. */
interface Binding {
  /** Parses the parameters of a request. */
  params(handling: Handling<Operation, DoorAgent>): Promise<Record<string, unknown>>
  /** Writes the response. */
  answer(handling: Handling<Operation, DoorAgent>, done: Done, reply: FastifyReply): Promise<Answer | undefined>
}

/** Serves A2A 1.0 at `/a2a`: an agent is a remote agent of the protocol, and its tasks are the protocol's tasks. */
export async function a2aRoutes(app: FastifyInstance, http: HttpContext, context: Context): Promise<void> {
  await app.register(async (door) => {
    // A JSON-RPC response needs the id of its request, also if an error handler outside of these routes created it.
    door.addHook('preSerialization', async (request, _reply, payload) =>
      isObject(payload) && payload['jsonrpc'] === '2.0' ? { ...payload, id: request.rpc_id ?? null } : payload,
    )
    cardRoutes(door, http, context)
    methodRoutes(door, http, context)
  })
}

function cardRoutes(app: FastifyInstance, http: HttpContext, { sql, config, public_url }: Context): void {
  const answered = async (agent: DoorAgent, { request, header }: Loading): Promise<Answer> => {
    const card = AgentCard.toJSON(cardOf(agent, public_url())) as Record<string, unknown>
    const body = a2aConfig(agent.config).v0_3 ? { ...card, ...(await legacyCard(agent, public_url())) } : card
    const tag = `"${createHash('sha256').update(JSON.stringify(body)).digest('base64url').slice(0, 27)}"`
    header('etag', tag)
    header('cache-control', `public, max-age=${cardAge_seconds}`)
    return isKnown(request.headers['if-none-match'], tag) ? new Answer(304, undefined) : new Answer(200, body)
  }
  handle(app, http, operations.getAgentCard, {
    run: async (handling) => answered(await requirePublished(sql, handling.params['agent_id']!, null), handling),
  })
  handle(app, http, operations.getDefaultAgentCard, {
    run: async (handling) => {
      const id = config.a2a_default_agent
      if (id === undefined) throw notFound('agent_not_found', 'agent', '')
      return answered(await requirePublished(sql, id, null), handling)
    },
  })
}

function methodRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const doorFiles = makeDoorFiles(context)
  const calls = makeCalls(context, doorFiles)
  const load = ({ sql, params, principal }: Loading): Promise<DoorAgent> =>
    requirePublished(sql, params['agent_id']!, principal.org_id)
  const served = (operation: Operation, method: A2aMethod, binding: Binding): Served => ({
    operation,
    handlers: {
      load,
      ...(method.startsWith('Send') && {
        receive: async (loading: Loading, validated: () => object) => {
          if (!mayHaveFiles(loading.request)) return undefined
          const loaded = await load(loading)
          const handling = { ...loading, loaded, ...validated() } as Handling<Operation, DoorAgent>
          const { urls } = readSend(await binding.params(handling))
          const whose = { project_id: loaded.project_id, created_by: loading.principal.user_id }
          return doorFiles.receive(loading.request, whose, urls)
        },
      }),
      run: async (handling: Handling<Operation, DoorAgent>) => {
        activateExtensions(handling)
        return calls[method](handling, handling.loaded, await binding.params(handling))
      },
      finish: (handling: Handling<Operation, DoorAgent>, answer: Answer, reply: FastifyReply) =>
        binding.answer(handling, answer.body as Done, reply),
    },
  })

  const byMethod = new Map(
    (Object.entries(operations.rpcMethods) as [A2aMethod, Operation][]).map(([method, operation]) => [
      method as string,
      served(operation, method, rpcBinding(context)),
    ]),
  )
  const unknown: Served = { operation: operations.unknownRpc as Operation, handlers: { load, run: refuseUnknown } }
  const url = operations.unknownRpc.path.replaceAll(/\{(\w+)\}/g, ':$1')
  handleChosen(app, http, { method: 'POST', url, operation: unknown.operation }, (request) => {
    const { id, method } = peek(request)
    request.rpc_id = id
    return byMethod.get(method) ?? byMethod.get(legacyMethods.get(method) ?? '') ?? unknown
  })

  const rest = (
    operation: unknown,
    method: A2aMethod,
    more: (handling: Handling<Operation, DoorAgent>) => object = () => ({}),
  ): Served => served(operation as Operation, method, restBinding(context, method, more))
  const task = ({ params }: Handling<Operation, DoorAgent>) => ({ id: (params['task_id'] ?? '').replace(/:\w+$/, '') })
  const config = ({ params }: Handling<Operation, DoorAgent>) => ({
    taskId: params['task_id'],
    id: params['config_id'],
  })
  const ofTask = ({ params }: Handling<Operation, DoorAgent>) => ({ taskId: params['task_id'] })
  const at = (path: string): string => `${url}${path}`
  const only = (one: Served, path: string): void =>
    handleChosen(app, http, { method: one.operation.method, url: at(path), operation: one.operation }, () => one)
  only(rest(operations.sendMessage, 'SendMessage'), '/message::send')
  only(rest(operations.sendStreamingMessage, 'SendStreamingMessage'), '/message::stream')
  only(rest(operations.listTasks, 'ListTasks'), '/tasks')
  only(rest(operations.getExtendedAgentCard, 'GetExtendedAgentCard'), '/extendedAgentCard')
  only(
    rest(operations.createPushConfig, 'CreateTaskPushNotificationConfig', ofTask),
    '/tasks/:task_id/pushNotificationConfigs',
  )
  only(
    rest(operations.listPushConfigs, 'ListTaskPushNotificationConfigs', ofTask),
    '/tasks/:task_id/pushNotificationConfigs',
  )
  only(
    rest(operations.getPushConfig, 'GetTaskPushNotificationConfig', config),
    '/tasks/:task_id/pushNotificationConfigs/:config_id',
  )
  only(
    rest(operations.deletePushConfig, 'DeleteTaskPushNotificationConfig', config),
    '/tasks/:task_id/pushNotificationConfigs/:config_id',
  )

  // The router cannot match a path that ends with `:verb`, so the verb is read here.
  const get = rest(operations.getTask, 'GetTask', task)
  const getSubscribe = rest(operations.getSubscribeToTask, 'SubscribeToTask', task)
  const subscribe = rest(operations.subscribeToTask, 'SubscribeToTask', task)
  const cancel = rest(operations.cancelTask, 'CancelTask', task)
  const nothing: Served = {
    operation: operations.cancelTask as Operation,
    handlers: {
      load,
      run: async () => {
        throw a2aProblem('METHOD_NOT_FOUND', 'The method is unknown. Use :cancel or :subscribe.', 'path_not_found')
      },
    },
  }
  const word = (request: FastifyRequest): string =>
    /:(\w+)$/.exec((request.params as Record<string, string>)['task_id'] ?? '')?.[1] ?? ''
  handleChosen(app, http, { method: 'GET', url: at('/tasks/:task_id'), operation: get.operation }, (request) =>
    word(request) === 'subscribe' ? getSubscribe : get,
  )
  handleChosen(app, http, { method: 'POST', url: at('/tasks/:task_id'), operation: cancel.operation }, (request) => {
    const asked = word(request)
    return asked === 'subscribe' ? subscribe : asked === 'cancel' ? cancel : nothing
  })
}

/** Member names in bodies with files; `file` is from version 0.3. */
const fileMarks = ['"raw"', '"url"', '"file"'].map((mark) => Buffer.from(mark))

/** Whether a body may have files; a cheap check before the body is parsed again. */
function mayHaveFiles({ body }: FastifyRequest): boolean {
  return fileMarks.some((mark) => (body as Buffer | undefined)?.includes(mark))
}

/** Reads id and method from a body that is not validated yet. */
function peek({ body }: FastifyRequest): { id: string | number | null; method: string } {
  try {
    const { id, method } = JSON.parse((body as Buffer).toString()) as Record<string, unknown>
    const isId = typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id))
    return { id: isId ? id : null, method: typeof method === 'string' ? method : '' }
  } catch {
    return { id: null, method: '' }
  }
}

async function refuseUnknown({ body }: Handling<Operation, DoorAgent>): Promise<never> {
  requireEnvelope(body)
  throw a2aProblem('METHOD_NOT_FOUND', 'The method is unknown.', 'path_not_found')
}

function requireEnvelope({ jsonrpc, method, id }: Record<string, unknown>): void {
  const isId =
    id === undefined || id === null || typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id))
  if (jsonrpc !== '2.0' || typeof method !== 'string' || !isId)
    throw a2aProblem('INVALID_REQUEST', 'The body must be a request of JSON-RPC 2.0.', 'validation_error')
}

function activateExtensions({ request, header }: Loading): void {
  const asked = request.headers['a2a-extensions']
  if (typeof asked === 'string' && Extensions.parseServiceParameter(asked).includes(operations.approvalExtension))
    header('a2a-extensions', operations.approvalExtension)
}

/** The protocol version of a request; 0.3 if the client sends none. */
function versionOf(request: FastifyRequest): string {
  const header = request.headers['a2a-version']
  const query = (request.query as Record<string, unknown> | undefined)?.['A2A-Version']
  const version = typeof header === 'string' && header !== '' ? header : query
  return typeof version === 'string' && version !== '' ? version : '0.3'
}

/** Whether a request uses version 0.3. Throws `VERSION_NOT_SUPPORTED` for a version that the agent does not serve. */
function isLegacy({ request, loaded }: Handling<Operation, DoorAgent>, { byRpc }: { byRpc: boolean }): boolean {
  const version = versionOf(request)
  if (/^1\.0(\.\d+)?$/.test(version)) return false
  const { v0_3 } = a2aConfig(loaded.config)
  if (byRpc && v0_3 && /^0\.3(\.\d+)?$/.test(version)) return true
  const spoken = byRpc && v0_3 ? '1.0 and 0.3' : '1.0'
  throw a2aProblem(
    'VERSION_NOT_SUPPORTED',
    `A2A-Version ${version.slice(0, 20)} is not supported. Supported: ${spoken}.`,
    'validation_error',
  )
}

function rpcBinding(context: Context): Binding {
  return {
    async params(handling) {
      const body = handling.body as Record<string, unknown>
      requireEnvelope(body)
      if (isLegacy(handling, { byRpc: true })) return readLegacy(handling.loaded, body, context.public_url())
      if (typeof body['method'] === 'string' && legacyMethods.has(body['method']))
        throw a2aProblem('METHOD_NOT_FOUND', 'The method is unknown.', 'path_not_found')
      return body['method'] === 'GetExtendedAgentCard' ? paramsOf(body['params'] ?? {}) : paramsOf(body['params'])
    },
    async answer(handling, done, reply) {
      const body = handling.body as Record<string, unknown>
      const legacy = isLegacy(handling, { byRpc: true })
      const params = legacy ? body['params'] : camelCased(body['params'])
      const call = { ...body, params, id: handling.request.rpc_id ?? null }
      const said = new ServerCallContext({ requestedVersion: legacy ? '0.3' : '1.0' })
      const through = (handler: A2ARequestHandler) =>
        legacy ? answerLegacy(handler, call, said) : new JsonRpcTransportHandler(handler).handle(call, said)
      if (done.kind === 'stream') {
        const frames = numbered(context, handling, done, reply)
        const answer = await through(requestHandler(null, frames.events))
        if (!(Symbol.asyncIterator in answer)) return new Answer(200, answer)
        return writeEvents(reply, encoded(answer, frames))
      }
      const work = async (): Promise<unknown> => through(requestHandler(await resultOf(context, handling, done, reply)))
      const failed = (error: unknown): unknown => {
        const { body: refusal } = renderProblem(toProblem(error), 'a2a', handling.request_id)
        return { ...(refusal as object), id: call.id }
      }
      const early = await answerEarly(reply, 'application/json; charset=utf-8', work, failed)
      return early === undefined ? undefined : new Answer(200, early)
    },
  }
}

const mediaType = 'application/a2a+json'

/** Serializers of results by method. Other methods return a task. */
const writers: Partial<Record<A2aMethod, (value: never) => unknown>> = {
  SendMessage: (value: Task) => ({ task: Task.toJSON(value) }),
  ListTasks: (value: ListTasksResponse) => ({
    ...{ tasks: [], nextPageToken: '', pageSize: 0, totalSize: 0 },
    ...(ListTasksResponse.toJSON(value) as object),
  }),
  CreateTaskPushNotificationConfig: (value: TaskPushNotificationConfig) => TaskPushNotificationConfig.toJSON(value),
  GetTaskPushNotificationConfig: (value: TaskPushNotificationConfig) => TaskPushNotificationConfig.toJSON(value),
  ListTaskPushNotificationConfigs: (value: ListTaskPushNotificationConfigsResponse) => ({
    configs: [],
    ...(ListTaskPushNotificationConfigsResponse.toJSON(value) as object),
  }),
  GetExtendedAgentCard: (value: AgentCard) => AgentCard.toJSON(value),
}

function restBinding(
  context: Context,
  method: A2aMethod,
  more: (handling: Handling<Operation, DoorAgent>) => object,
): Binding {
  const write = (writers[method] ?? Task.toJSON) as (value: unknown) => unknown
  return {
    async params(handling) {
      isLegacy(handling, { byRpc: false })
      const { query, body } = handling as { query: object | undefined; body: object | undefined }
      return { ...paramsOf({ ...query, ...body }), ...more(handling) }
    },
    async answer(handling, done, reply) {
      if (done.kind === 'stream') {
        const frames = numbered(context, handling, done, reply)
        return writeEvents(reply, encoded(plain(frames.events()), frames))
      }
      const status = handling.request.routeOptions.config.operation?.responses[0]?.status ?? 200
      if (method === 'DeleteTaskPushNotificationConfig') return new Answer(204, undefined)
      const work = async (): Promise<unknown> => write(await resultOf(context, handling, done, reply))
      const failed = (error: unknown): unknown => renderProblem(toProblem(error), 'a2a_http', handling.request_id).body
      const early = await answerEarly(reply, mediaType, work, failed)
      if (early === undefined) return undefined
      reply.type(mediaType)
      return new Answer(status, early)
    },
  }
}

/** The result of a call that is not a stream. */
async function resultOf(
  context: Context,
  handling: Handling<Operation, DoorAgent>,
  done: Exclude<Done, { kind: 'stream' }>,
  reply: FastifyReply,
): Promise<unknown> {
  if (done.kind === 'result') return done.value
  const row = await requireA2aTask(context.sql, handling.loaded, done.task_id)
  if (!reply.raw.headersSent) reply.header('cadre-task-id', done.task_id)
  if (done.kind === 'canceled') {
    const signal = AbortSignal.any([untilClosed(reply), AbortSignal.timeout(cancelWait_ms)])
    const state = await awaitTask(context, row, { signal, isOver: ({ isOver }) => isOver }).catch(() => undefined)
    return (state ?? (await readTask(context, row))).task()
  }
  const { historyLength, first_sequence } = done
  const isOver = (state: A2aTaskState): boolean => endsFor(state, { since: first_sequence, resolves: true })
  const state =
    done.waits && !done.rests
      ? await awaitTask(context, row, { signal: untilClosed(reply), isOver })
      : await readTask(context, row)
  state.takeSent(first_sequence)
  return state.task({ historyLength })
}

/** The events of a stream, and the number of the latest one. */
interface Numbered {
  number: number
  events(): AsyncGenerator<StreamResponse, void, undefined>
}

function numbered(
  context: Context,
  handling: Handling<Operation, DoorAgent>,
  { task_id, start }: Extract<Done, { kind: 'stream' }>,
  reply: FastifyReply,
): Numbered {
  const signal = untilClosed(reply)
  reply.header('cadre-task-id', task_id)
  const resolves = mayResolve(handling.principal)
  const since = typeof start === 'object' && 'first_sequence' in start ? start.first_sequence : undefined
  const isOver = async (state: A2aTaskState): Promise<boolean> => {
    if (!endsFor(state, { since: since ?? 0, resolves })) return false
    // A resumed stream does not end at a wait that was answered in the meantime.
    return state.isOver || since !== undefined || isAtHead(context.sql, task_id, state.interruptedAt!)
  }
  const frames: Numbered = {
    number: -1,
    async *events() {
      const row = await requireA2aTask(context.sql, handling.loaded, task_id)
      for await (const { number, event } of streamTask(context, row, start, { signal, isOver })) {
        frames.number = number
        yield event
      }
    },
  }
  return frames
}

async function* plain(events: AsyncIterable<StreamResponse>): AsyncGenerator<unknown, void, undefined> {
  for await (const event of events) yield StreamResponse.toJSON(event)
}

/** Serializes frames; the id of each is the number of its event. */
async function* encoded(events: AsyncIterable<unknown>, frames: Numbered): AsyncGenerator<string, void, undefined> {
  for await (const event of events) yield `id: ${frames.number}\ndata: ${JSON.stringify(event)}\n\n`
}
