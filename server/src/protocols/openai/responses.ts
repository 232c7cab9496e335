import type { FastifyInstance, FastifyReply } from 'fastify'
import { isObject } from '#contract/core/merge-patch.ts'
import type { AskedRequest } from '../../engine/commands/repeated-requests.queries.ts'
import { notFound } from '#contract/core/problems.ts'
import * as operations from '#contract/doors/openai.ts'
import { untilClosed } from '../../http/connection/until-closed.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { findResponse, hideResponse, type FoundResponse } from '../door-responses.queries.ts'
import { cancelSegment, mayResolve, type AskedSegment } from '../open-segment.ts'
import { followSegment, readSegment } from '../segment-events.ts'
import { SegmentFold, type Happening } from '../segment-fold.ts'
import { awaitSegment, cancelWithConnection, streamSegment, type Telling } from '../served-segment.ts'
import { requireConversation } from '../conversations.queries.ts'
import type { DoorFiles } from '../door-files.ts'
import {
  finishOpened,
  echoOf,
  openOnce,
  receiveAsked,
  requireModel,
  type AskedModels,
  type OpenAiDoor,
  type Opened,
} from './open.ts'
import { withReferences } from './item-references.ts'
import { badParameter } from './problems.ts'
import { pageOf } from './pages.ts'
import { readInput } from './read-input.ts'
import { doorConfig, ignoredHeader, openWebUiHeaders, readOptions } from './read-options.ts'
import { ResponseState, type ResponseFrame } from './response-state.ts'

/** The response to a cancellation waits for its effect, up to this time. */
const cancelWait_ms = 5000

/** Routes of responses: each is a segment of a task. */
export function responseRoutes(app: FastifyInstance, http: HttpContext, door: OpenAiDoor): void {
  const { models, doorFiles, sourceOf } = door

  handle(app, http, operations.createResponse, {
    receive: (loading, validated) =>
      receiveAsked(doorFiles, loading, models, () => {
        const body = validated().body as Record<string, unknown>
        return { body, input: readInput(body['input'] ?? []), conversation: conversationOf(body) }
      }),
    run: async (handling) => {
      const body = handling.body as Record<string, unknown>
      const isBackground = body['background'] === true
      if (!isBackground || body['stream'] === true) await handling.occupy()
      return openOnce(door, handling, (request) => askedOf(handling, body, { models, doorFiles, request }))
    },
    finish: (handling, answer, reply) =>
      finishOpened(answer.body as Opened, async ({ response_id, record, made, fresh }) => {
        const body = handling.body as Record<string, unknown>
        const found = made ?? (await requireResponse(door.sql, response_id, handling, { hidden: true }))
        if (record !== null) door.ends.note(reply, record)
        reply.header('cadre-task-id', found.task_id)
        reply.headers(ignoredHeader(body))
        if (body['stream'] === true)
          return streamResponse(reply, door, handling, { found, fresh, body, starting_after: -1 })
        if (body['background'] === true) return new Answer(200, (await stateInBackground(door.sql, found)).view())
        const { fold, state } = stateOf(found)
        if (wantsCancel(body)) cancelWithConnection(reply, door, handling, found, fold)
        const done = await awaitSegment(reply, sourceOf(found, fresh), fold, {
          take: (happening) => void state.take(happening),
          body: () => state.view(),
        })
        return done === undefined ? undefined : new Answer(200, done)
      }),
  })

  handle(app, http, operations.getResponse, {
    load: loadResponse,
    run: async ({ loaded, query, occupy }) => {
      if (query.stream) {
        await occupy()
        return {}
      }
      return (await readState(door.sql, loaded)).view()
    },
    finish: async (handling, answer, reply) => {
      const { loaded, query } = handling
      reply.header('cadre-task-id', loaded.task_id)
      if (!query.stream) return answer
      return streamResponse(reply, door, handling, {
        found: loaded,
        body: {},
        starting_after: query.starting_after ?? -1,
      })
    },
  })

  handle(app, http, operations.cancelResponse, {
    load: loadResponse,
    run: async (handling) => {
      const { loaded } = handling
      await cancelSegment(door.sql, door, handling, loaded)
      return {}
    },
    // The worker usually confirms a cancellation at once, unless a tool call has to end first.
    finish: async ({ loaded, principal }, _answer, reply) => {
      const found = (await findResponse(door.sql, loaded.id, principal)) ?? loaded
      const { fold, state } = stateOf(found)
      const signal = AbortSignal.any([untilClosed(reply), AbortSignal.timeout(cancelWait_ms)])
      const take = (happenings: Happening[]): void => happenings.forEach((happening) => void state.take(happening))
      const has_ended = await followSegment(sourceOf(found), fold, { signal, take, text: false }).catch(() => false)
      return new Answer(200, (has_ended ? state : await readState(door.sql, found)).view())
    },
  })

  handle(app, http, operations.deleteResponse, {
    load: loadResponse,
    run: async ({ sql, loaded }) => {
      await hideResponse(sql, loaded.id)
      return { id: loaded.id, object: 'response', deleted: true }
    },
  })

  handle(app, http, operations.listInputItems, {
    load: loadResponse,
    run: async ({ loaded, query }) => pageOf(loaded.input as { id: string }[], query),
  })
}

function loadResponse(loading: Loading): Promise<FoundResponse> {
  return requireResponse(loading.sql, loading.params['response_id']!, loading)
}

async function requireResponse(
  sql: Sql,
  id: string,
  { principal }: Pick<Loading, 'principal'>,
  options: { hidden?: boolean } = {},
): Promise<FoundResponse> {
  const found = await findResponse(sql, id, principal, options)
  if (!found) throw notFound('response_not_found', 'response', id.slice(0, 100))
  return found
}

/** Validates a request. Throws 400 with `param`, or 404 for its model or conversation. */
async function askedOf(
  loading: Loading,
  body: Record<string, unknown>,
  { models, doorFiles, request }: { models: AskedModels; doorFiles: DoorFiles; request: AskedRequest | undefined },
): Promise<AskedSegment> {
  const agent = await requireModel(loading, body['model'], models, request)
  const options = readOptions(body, agent.config)
  const { previous_response_id } = body
  const conversation_id = conversationOf(body)
  if (conversation_id !== undefined) await requireConversation(loading.sql, conversation_id, loading.principal)
  if (body['input'] === undefined || body['input'] === null)
    throw badParameter('input', 'input is required.', 'missing_required_parameter')
  const max_tool_calls = body['max_tool_calls']
  const bound = options.task.budget?.['max_tool_calls'] ?? Infinity
  const isLower = typeof max_tool_calls === 'number' && max_tool_calls <= bound
  const budget = isLower ? { ...options.task.budget, max_tool_calls } : options.task.budget
  return {
    kind: 'openai.responses',
    agent,
    input: readInput(await withReferences(loading.sql, agent, body['input'])),
    caller: { ...options.caller, ...(isLower && { max_tool_calls }) },
    output_schema: options.output_schema,
    request: echoOf(body, options, agent),
    metadata: { ...options.metadata, ...openWebUiHeaders(loading.request.headers) },
    task: { ...options.task, ...(budget && { budget }) },
    previous: typeof previous_response_id === 'string' ? previous_response_id : null,
    conversation: conversation_id ?? null,
    store: body['store'] !== false,
    resolves: mayResolve(loading.principal),
    files: doorFiles.of(loading.request),
  }
}

/** The conversation id of a request, given as a text or in an object; undefined if there is none. */
function conversationOf({ conversation, previous_response_id }: Record<string, unknown>): string | undefined {
  if (previous_response_id && conversation)
    throw badParameter('conversation', 'previous_response_id and conversation cannot be combined.')
  const id = isObject(conversation) ? conversation['id'] : conversation
  if (id === undefined || id === null) return undefined
  if (typeof id === 'string') return id
  throw badParameter('conversation', 'conversation must be an id, or an object with one.')
}

function wantsCancel({ cadre }: Record<string, unknown>): boolean {
  return isObject(cadre) && cadre['on_disconnect'] === 'cancel'
}

function stateOf(found: FoundResponse): { fold: SegmentFold; state: ResponseState } {
  const fold = new SegmentFold(found)
  const { showsToolOutput } = doorConfig({ doors: found.doors })
  return { fold, state: new ResponseState(found, fold, { showsToolOutput }) }
}

/** The current state of a response from the journal. */
export async function readState(sql: Sql, found: FoundResponse): Promise<ResponseState> {
  const { fold, state } = stateOf(found)
  const { task_id, first_sequence, before_sequence } = found
  await readSegment({ sql, task_id, first_sequence, before_sequence }, fold, (happenings) => {
    for (const happening of happenings) state.take(happening)
  })
  return state
}

/**
 * The immediate response to a background request: queued, like the start of its stream, unless there is progress
 * already.
 */
async function stateInBackground(sql: Sql, found: FoundResponse): Promise<ResponseState> {
  const state = await readState(sql, found)
  return state.status === 'in_progress' && state.output.length === 0 ? stateOf(found).state : state
}

async function streamResponse(
  reply: FastifyReply,
  context: OpenAiDoor,
  by: Loading,
  {
    found,
    fresh,
    body,
    starting_after,
  }: { found: FoundResponse; fresh?: Opened['fresh']; body: Record<string, unknown>; starting_after: number },
): Promise<undefined> {
  const { fold, state } = stateOf(found)
  if (wantsCancel(body)) cancelWithConnection(reply, context, by, found, fold)
  const telling: Telling = {
    take: (happening) =>
      state
        .take(happening)
        .filter(({ sequence_number }) => sequence_number > starting_after)
        .map(encodeFrame),
    end: () => ['data: [DONE]\n\n'],
  }
  return streamSegment(reply, context.sourceOf(found, fresh), fold, telling)
}

/** Encodes a frame of a response's stream. The SSE event is its type, and there is no id. */
export function encodeFrame(frame: ResponseFrame): string {
  return `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`
}
