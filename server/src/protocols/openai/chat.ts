import type { FastifyInstance } from 'fastify'
import { isObject } from '#contract/core/merge-patch.ts'
import type { AskedRequest } from '../../engine/commands/repeated-requests.queries.ts'
import { createChatCompletion } from '#contract/doors/openai.ts'
import { notFound } from '#contract/core/problems.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { findResponse, type FoundResponse } from '../door-responses.queries.ts'
import type { AskedSegment } from '../open-segment.ts'
import { SegmentFold } from '../segment-fold.ts'
import { awaitSegment, cancelWithConnection, streamSegment, type Telling } from '../served-segment.ts'
import { ChatState } from './chat-state.ts'
import type { DoorFiles } from '../door-files.ts'
import {
  finishOpened,
  openOnce,
  receiveAsked,
  requireModel,
  type AskedModels,
  type OpenAiDoor,
  type Opened,
} from './open.ts'
import { readChatMessages } from './read-input.ts'
import { doorConfig, ignoredHeader, openWebUiHeaders, readOptions } from './read-options.ts'

/** Routes of Chat Completions. The protocol is stateless; each request creates or continues a task. */
export function chatRoutes(app: FastifyInstance, http: HttpContext, door: OpenAiDoor): void {
  const { models, doorFiles, sourceOf } = door
  handle(app, http, createChatCompletion, {
    receive: (loading, validated) =>
      receiveAsked(doorFiles, loading, models, () => {
        const body = validated().body as Record<string, unknown>
        return { body, input: readChatMessages(body['messages']) }
      }),
    run: async (handling) => {
      await handling.occupy()
      const body = handling.body as Record<string, unknown>
      return openOnce(door, handling, (request) => askedOf(handling, body, { models, doorFiles, request }))
    },
    finish: (handling, answer, reply) =>
      finishOpened(answer.body as Opened, async ({ response_id, record, made, fresh }) => {
        const body = handling.body as Record<string, unknown>
        const found = made ?? (await findResponse(door.sql, response_id, handling.principal, { hidden: true }))
        if (!found) throw notFound('response_not_found', 'response', response_id)
        if (record !== null) door.ends.note(reply, record)
        reply.header('cadre-task-id', found.task_id)
        reply.headers(ignoredHeader(body))
        const fold = new SegmentFold(found)
        const state = stateOf(found, fold)
        const { cadre, stream, stream_options } = body
        if (isObject(cadre) && cadre['on_disconnect'] === 'cancel')
          cancelWithConnection(reply, door, handling, found, fold)
        if (stream === true) {
          const usage = isObject(stream_options) && stream_options['include_usage'] === true
          return streamSegment(reply, sourceOf(found, fresh), fold, tellingOf(state, usage))
        }
        const done = await awaitSegment(reply, sourceOf(found, fresh), fold, {
          take: (happening) => void state.take(happening),
          isOver: () => state.over,
          body: (isLate) => (isLate || !state.failure || isInvalid(state) ? state.whole() : undefined),
        })
        if (done !== undefined) return new Answer(200, done)
        if (reply.raw.headersSent || !state.failure) return undefined
        reply.header('x-should-retry', 'false')
        return new Answer(state.failure.status, { error: state.failure.error })
      }),
  })
}

/** Whether the answer violates its schema; it is returned anyway. */
function isInvalid({ failure }: ChatState): boolean {
  return failure?.error.code === 'output_invalid'
}

async function askedOf(
  loading: Loading,
  body: Record<string, unknown>,
  { models, doorFiles, request }: { models: AskedModels; doorFiles: DoorFiles; request: AskedRequest | undefined },
): Promise<AskedSegment> {
  const agent = await requireModel(loading, body['model'], models, request)
  const options = readOptions(body, agent.config)
  return {
    kind: 'openai.chat',
    agent,
    input: readChatMessages(body['messages']),
    caller: options.caller,
    output_schema: options.output_schema,
    request: { model: body['model'] },
    metadata: { ...options.metadata, ...openWebUiHeaders(loading.request.headers) },
    task: options.task,
    previous: null,
    conversation: null,
    store: false,
    resolves: false,
    files: doorFiles.of(loading.request),
  }
}

function stateOf(found: FoundResponse, fold: SegmentFold): ChatState {
  const { task_id, agent_version, request, created_at, doors, has_schema: hasSchema } = found
  const created = Math.floor(Date.parse(created_at) / 1000)
  const progress = doorConfig({ doors }).progress !== null
  return new ChatState({ task_id, agent_version, model: request['model'], created }, fold, { progress, hasSchema })
}

function tellingOf(state: ChatState, usage: boolean): Telling {
  const noUsage = usage ? { usage: null } : {}
  const encode = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`
  return {
    take: (happening) => state.take(happening).map((delta) => encode(state.chunk(delta, null, noUsage))),
    over: () => state.over,
    end() {
      if (state.failure) return [encode({ error: state.failure.error })]
      return [
        encode(state.chunk({}, state.finishReason, noUsage)),
        ...(usage ? [encode(state.usageChunk())] : []),
        'data: [DONE]\n\n',
      ]
    },
  }
}
