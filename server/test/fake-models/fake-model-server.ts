import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FakeAnswer } from './fake-answer.ts'
import { anthropicEvents, openaiChunks } from './fake-chat-messages.ts'
import { responsesEvents, responsesFailure } from './fake-responses.ts'
import { strictChat } from './strict-chat.ts'
import { FakeMemory, type Refusal, type StrictState } from './strict-memory.ts'
import { strictMessages, strictMessagesHeaders } from './strict-messages.ts'
import { strictResponses } from './strict-responses.ts'

/** What the server does with one request. */
export type FakeBehaviour =
  /** A whole answer, streamed; `delay_ms` before its first byte. */
  | ({ do: 'answer'; delay_ms?: number } & FakeAnswer)
  /** Another status, with a body in the provider's form unless one is given. */
  | { do: 'status'; status: number; headers?: Record<string, string>; message?: string; code?: string; body?: string }
  /** The connection is reset before a byte of the answer. */
  | { do: 'reset' }
  /** The answer begins and the connection is reset after `pieces` of it. */
  | ({ do: 'cut'; pieces: number } & FakeAnswer)
  /** The answer begins and ends properly after `pieces` of it, without saying that it is finished. */
  | ({ do: 'end_early'; pieces: number } & FakeAnswer)
  /** The answer begins and nothing comes after `pieces` of it: 0 is silence from the start. */
  | ({ do: 'stall'; pieces: number } & FakeAnswer)
  /** The answer begins, the rest comes after `pieces` of it when the gate opens: silence that a test controls. */
  | ({ do: 'hold'; pieces: number; until: Promise<unknown> } & FakeAnswer)
  /** Status 200 and this text as it is, with this type. */
  | { do: 'raw'; body: string; content_type?: string }
  /** A stream in which an error comes after `pieces` of the answer; in Responses also as `response.failed`. */
  | ({ do: 'error_event'; pieces: number; error: Record<string, unknown>; as?: 'error' | 'failed' } & FakeAnswer)

/** A request as it came. */
export interface FakeRequest {
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
}

/** A scripted model server on loopback. */
export interface FakeModelServer {
  /** For `OPENAI_BASE_URL`, and for `ANTHROPIC_BASE_URL`: ends in `/v1`. */
  base_url: string
  /** Every request so far. */
  requests: FakeRequest[]
  /** Those of them that the provider would not have taken, and what it would have said. They take nothing off the queue. */
  refused: { request: FakeRequest; message: string }[]
  /** Whose chat completions these are; where it is not set, OpenAI's for the names of its models and a compatible server's for all others. */
  strict_as: 'openai' | 'compatible' | undefined
  /** Connections that are open now. */
  connections: () => Promise<number>
  /** Queues behaviours: each is for one request, in order. */
  next(...behaviours: FakeBehaviour[]): void
  /** What happens when the queue is empty; at first every request is answered `Hello from the fake model.` */
  always(behaviour: FakeBehaviour | ((request: FakeRequest) => FakeBehaviour)): void
  /** Resolves when `count` requests have come, counted from the start. */
  waitForRequests(count: number): Promise<void>
  close(): Promise<void>
}

/**
 * Starts a server that speaks OpenAI's Responses (`POST /v1/responses`) and chat completions (`POST
 * /v1/chat/completions`) and Anthropic's messages (`POST /v1/messages`), streamed, with reasoning, usage and tool calls;
 * on 127.0.0.1 only, at a free port unless one is given. It is as strict as what it stands for: what the provider would
 * not take is refused in the provider's words, whatever the test wants to happen, and is in `refused`.
 */
export async function startFakeModelServer({
  port = 0,
  strict_as,
}: { port?: number; strict_as?: 'openai' | 'compatible' } = {}): Promise<FakeModelServer> {
  const requests: FakeRequest[] = []
  const refused: FakeModelServer['refused'] = []
  const state: StrictState = { memory: new FakeMemory(), strict_as }
  const queue: FakeBehaviour[] = []
  const waiters: { count: number; done: () => void }[] = []
  let fallback: FakeBehaviour | ((request: FakeRequest) => FakeBehaviour) = {
    do: 'answer',
    text: 'Hello from the fake model.',
  }

  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await readRequest(incoming)
    requests.push(request)
    const protocol = request.method === 'POST' ? protocols[request.path] : undefined
    const refusal = protocol?.check(request, state)
    const behaviour =
      refusal === undefined
        ? (queue.shift() ?? (typeof fallback === 'function' ? fallback(request) : fallback))
        : undefined
    if (refusal) refused.push({ request, message: refusal.message })
    for (const waiter of waiters) if (requests.length >= waiter.count) waiter.done()
    if (!protocol)
      return refuse(response, openai, { do: 'status', status: 404, message: `no such path: ${request.path}` })
    if (refusal) return refuseAs(response, protocol, refusal)
    if (behaviour) await behave(behaviour, { request, response, protocol, state })
  }
  const server = createServer((incoming, response) => {
    response.on('error', () => {})
    answer(incoming, response).catch(() => response.destroy())
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')

  return {
    base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    refused,
    get strict_as() {
      return state.strict_as
    },
    set strict_as(as) {
      state.strict_as = as
    },
    connections: () =>
      new Promise((done, fail) => server.getConnections((error, count) => (error ? fail(error) : done(count)))),
    next: (...behaviours) => void queue.push(...behaviours),
    always: (behaviour) => void (fallback = behaviour),
    waitForRequests: (count) =>
      new Promise((done) => (requests.length >= count ? done() : void waiters.push({ count, done }))),
    close: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function readRequest(incoming: IncomingMessage): Promise<FakeRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const body =
    chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString('utf8')) as Record<string, unknown>)
  return { method: incoming.method ?? '', path: incoming.url ?? '', headers: incoming.headers, body }
}

/** What differs between the protocols. */
interface Protocol {
  /** Whether errors have Anthropic's form. */
  isAnthropic: boolean
  check(request: FakeRequest, state: StrictState): Refusal | undefined
  frames(answer: FakeAnswer, body: Record<string, unknown>, state: StrictState): string[]
  /** The frame of an error in the middle of an answer, after `sent` other frames. */
  error(behaviour: Extract<FakeBehaviour, { do: 'error_event' }>, body: Record<string, unknown>, sent: number): string
}

const openai: Protocol = {
  isAnthropic: false,
  check: ({ body }, state) => strictChat(body, state),
  frames: openaiChunks,
  error: ({ error }) => `data: ${JSON.stringify({ error })}\n\n`,
}

const protocols: Record<string, Protocol | undefined> = {
  '/v1/chat/completions': openai,
  '/v1/responses': {
    isAnthropic: false,
    check: ({ body }, state) => strictResponses(body, state),
    frames: responsesEvents,
    error: ({ error, as = 'error' }, request, sequence_number) =>
      responsesFailure(error, { as, request, sequence_number }),
  },
  '/v1/messages': {
    isAnthropic: true,
    check: ({ body, headers }, state) => strictMessagesHeaders(headers) ?? strictMessages(body, state),
    frames: anthropicEvents,
    error: ({ error }) => `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`,
  },
}

interface Exchange {
  request: FakeRequest
  response: ServerResponse
  protocol: Protocol
  state: StrictState
}

async function behave(behaviour: FakeBehaviour, { request, response, protocol, state }: Exchange): Promise<void> {
  if (behaviour.do === 'status') return refuse(response, protocol, behaviour)
  if (behaviour.do === 'reset') return void response.socket?.resetAndDestroy()
  if (behaviour.do === 'raw') {
    return void response
      .writeHead(200, { 'content-type': behaviour.content_type ?? 'text/event-stream' })
      .end(behaviour.body)
  }

  const pieces = protocol.frames(behaviour, request.body, state)
  if (behaviour.do === 'answer' && behaviour.delay_ms) await new Promise((done) => setTimeout(done, behaviour.delay_ms))
  const isWhole = behaviour.do === 'answer' || behaviour.do === 'hold'
  const kept = isWhole ? pieces : pieces.slice(0, behaviour.pieces)
  if (behaviour.do === 'hold' && behaviour.pieces === 0) await behaviour.until
  if (kept.length > 0)
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'x-request-id': 'req_fake' })
  for (const [at, piece] of kept.entries()) {
    if (behaviour.do === 'hold' && at === behaviour.pieces) await behaviour.until
    await send(response, piece)
  }
  if (behaviour.do === 'cut') return void response.socket?.resetAndDestroy()
  if (behaviour.do === 'stall') return
  if (behaviour.do === 'error_event') {
    if (kept.length === 0) response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    await send(response, protocol.error(behaviour, request.body, kept.length))
  }
  response.end()
}

/** Writes a piece and waits until it has left, so that pieces arrive as pieces. */
function send(response: ServerResponse, piece: string): Promise<void> {
  return new Promise((done) => void response.write(piece, () => setImmediate(done)))
}

/** A failure that a test asked for. */
function refuse(
  response: ServerResponse,
  { isAnthropic }: Protocol,
  behaviour: Extract<FakeBehaviour, { do: 'status' }>,
): void {
  const { status, message = `the fake model answers ${status}`, code = null, headers = {} } = behaviour
  const error = isAnthropic
    ? { type: code ?? 'api_error', message }
    : { message, type: 'fake_error', param: null, code }
  const body = behaviour.body ?? JSON.stringify(isAnthropic ? { type: 'error', error } : { error })
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}

/** What the provider says to a request that it does not take. */
function refuseAs(response: ServerResponse, { isAnthropic }: Protocol, refusal: Refusal): void {
  const { status, type = 'invalid_request_error', message, param = null, code = null } = refusal
  const body = isAnthropic
    ? { type: 'error', error: { type, message }, request_id: 'req_fake' }
    : { error: { message, type, param, code } }
  response
    .writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_fake' })
    .end(JSON.stringify(body))
}
