import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { anthropicEvents, type FakeAnswer, openaiChunks } from './fake-model-wire.ts'

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
  /** A stream in which an error comes after `pieces` of the answer. */
  | ({ do: 'error_event'; pieces: number; error: Record<string, unknown> } & FakeAnswer)

/** A request as it came. */
export interface FakeRequest {
  method: string
  path: string
  headers: IncomingMessage['headers']
  body: Record<string, unknown>
}

/** A model server on loopback that does as it is told. */
export interface FakeModelServer {
  /** For `OPENAI_BASE_URL`, and for `ANTHROPIC_BASE_URL`: ends in `/v1`. */
  base_url: string
  /** Every request so far. */
  requests: FakeRequest[]
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
 * Starts a server that speaks OpenAI's chat completions (`POST /v1/chat/completions`) and Anthropic's messages
 * (`POST /v1/messages`), streamed, with usage and tool calls; on 127.0.0.1 only, at a free port unless one is given.
 */
export async function startFakeModelServer({ port = 0 }: { port?: number } = {}): Promise<FakeModelServer> {
  const requests: FakeRequest[] = []
  const queue: FakeBehaviour[] = []
  const waiters: { count: number; done: () => void }[] = []
  let fallback: FakeBehaviour | ((request: FakeRequest) => FakeBehaviour) = {
    do: 'answer',
    text: 'Hello from the fake model.',
  }

  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await readRequest(incoming)
    requests.push(request)
    const behaviour = queue.shift() ?? (typeof fallback === 'function' ? fallback(request) : fallback)
    for (const waiter of waiters) if (requests.length >= waiter.count) waiter.done()
    await behave(behaviour, request, response)
  }
  const server = createServer((incoming, response) => {
    response.on('error', () => {})
    answer(incoming, response).catch(() => response.destroy())
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')

  return {
    base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
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

async function behave(behaviour: FakeBehaviour, request: FakeRequest, response: ServerResponse): Promise<void> {
  const isAnthropic = request.path === '/v1/messages'
  if (request.method !== 'POST' || (!isAnthropic && request.path !== '/v1/chat/completions')) {
    return refuse(response, isAnthropic, { do: 'status', status: 404, message: `no such path: ${request.path}` })
  }
  if (behaviour.do === 'status') return refuse(response, isAnthropic, behaviour)
  if (behaviour.do === 'reset') return void response.socket?.resetAndDestroy()
  if (behaviour.do === 'raw') {
    return void response
      .writeHead(200, { 'content-type': behaviour.content_type ?? 'text/event-stream' })
      .end(behaviour.body)
  }

  const pieces = (isAnthropic ? anthropicEvents : openaiChunks)(behaviour, request.body)
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
    const data = JSON.stringify({ ...(isAnthropic && { type: 'error' }), error: behaviour.error })
    await send(response, `${isAnthropic ? 'event: error\n' : ''}data: ${data}\n\n`)
  }
  response.end()
}

/** Writes a piece and waits until it has left, so that pieces arrive as pieces. */
function send(response: ServerResponse, piece: string): Promise<void> {
  return new Promise((done) => void response.write(piece, () => setImmediate(done)))
}

function refuse(
  response: ServerResponse,
  isAnthropic: boolean,
  behaviour: Extract<FakeBehaviour, { do: 'status' }>,
): void {
  const { status, message = `the fake model answers ${status}`, code = null, headers = {} } = behaviour
  const error = isAnthropic
    ? { type: code ?? 'api_error', message }
    : { message, type: 'fake_error', param: null, code }
  const body = behaviour.body ?? JSON.stringify(isAnthropic ? { type: 'error', error } : { error })
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}
