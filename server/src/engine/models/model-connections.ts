import { pipeline, Transform, type Readable } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { exchange, type Incoming } from '../../platform/egress/exchange.ts'
import { keepConnections } from '../../platform/egress/kept-connections.ts'
import { openUpstream, type UpstreamConnection } from '../../platform/egress/connect.ts'
import { ModelError, type NetworkUse } from './model.ts'
import { ProviderRefusal, statusOfErrorBody } from './model-errors.ts'
import { answerTooLong, callLimits } from './model-watch.ts'
import { eventMax, eventTooLong } from './providers/event-bound.ts'
import type { ProviderNetwork, ReadBody } from './providers/adapter.ts'
import { readUpTo } from '../../platform/read-up-to.ts'

/** The network of one model call, and its use. */
export interface ModelCallConnection extends ProviderNetwork {
  /** Bytes that crossed the network since the call started. */
  use(): NetworkUse
  /** Returns the connection to the pool if its response was read completely; closes it otherwise. */
  end(): Promise<void>
}

/** Timeout for resolving, connecting and TLS together. */
const connectTimeout_ms = 10_000
/** Maximum bytes of an error response that are read. */
const errorBodyMax = 64 * 1024

/** The addresses at which an origin may be reached; undefined for any. Throws if it may not be reached. */
export type JudgeOrigin = (origin: string) => Promise<readonly string[] | undefined>

const trusted: JudgeOrigin = async () => undefined

/**
 * Connects to providers. Those of the operator are trusted and may be on this machine; for those of organizations,
 * `judge` decides before each connection. No proxy of the environment is used, no redirect is followed, and every byte
 * is counted. A call has a connection to itself while it lasts.
 */
export function makeModelConnections(judge: JudgeOrigin = trusted): {
  /** Nothing is sent before `ready` resolves. */
  begin(ready?: Promise<void>): ModelCallConnection
} {
  const kept = keepConnections()
  return {
    begin: (ready) => {
      const used: { connection: UpstreamConnection; origin: string; before: NetworkUse }[] = []
      const connect = async ({ origin }: URL): Promise<UpstreamConnection> => {
        const connection = kept.take(origin) ?? (await open(origin, judge))
        used.push({ connection, origin, before: connection.use() })
        return connection
      }
      return {
        // The libraries pass a string, and only members of `init` that both kinds of fetch know.
        fetch: (async (input: string | URL, { method, headers, body, signal }: RequestInit = {}) => {
          if (ready) await ready
          const url = new URL(input)
          return toResponse(
            await send(await connect(url), url, {
              ...(method === undefined ? {} : { method }),
              headers: headers as Record<string, string>,
              body: (body as string | null | undefined) ?? null,
              signal: signal ?? null,
            }),
          )
        }) as typeof globalThis.fetch,
        post: async (to, request) => {
          if (ready) await ready
          const url = new URL(to)
          return readerOf(await send(await connect(url), url, { method: 'POST', ...request }))
        },
        use: () => {
          const total = { bytes_in: 0, bytes_out: 0 }
          for (const { connection, before } of used) {
            const now = connection.use()
            total.bytes_in += now.bytes_in - before.bytes_in
            total.bytes_out += now.bytes_out - before.bytes_out
          }
          return total
        },
        end: async () => {
          for (const { connection, origin } of used) await kept.give(origin, connection)
        },
      }
    },
  }
}

async function open(origin: string, judge: JudgeOrigin): Promise<UpstreamConnection> {
  const addresses = await judge(origin)
  return openUpstream(origin, { connectTimeout_ms, ...(addresses && { addresses }) })
}

/**
 * Sends a request like `fetch`, with what the libraries use of it: a URL, headers, a text body, a signal. `fetch`
 * itself would cost twice the CPU time of the request.
 */
async function send(
  { client }: UpstreamConnection,
  url: URL,
  init: { method?: string; headers: Record<string, string>; body: string | null; signal: AbortSignal | null },
): Promise<Incoming> {
  return exchange(client, {
    path: url.pathname + url.search,
    method: init.method ?? 'GET',
    headers: { ...init.headers, 'accept-encoding': 'identity' },
    body: init.body,
    signal: init.signal,
  }).catch((error: unknown) => {
    init.signal?.throwIfAborted()
    throw new TypeError('fetch failed', { cause: error })
  })
}

/** A response in the form of `fetch`. */
async function toResponse(answer: Incoming): Promise<Response> {
  const { status, headers } = answer
  if (bodiless.includes(status)) {
    await answer.read(() => {})
    return new Response(null, { status, headers })
  }
  const error = isOk(status) ? await readErrorBody(answer) : undefined
  if (!error) return new Response(webStream(plain(answer)), { status, headers })
  return new Response(error.text, { status: error.status, headers: { 'content-type': 'application/json' } })
}

/**
 * The body of a streamed response.
 * @throws ProviderRefusal for any other response
 */
async function readerOf(answer: Incoming): Promise<ReadBody> {
  const { status, headers } = answer
  if (!isOk(status)) throw new ProviderRefusal(status, headers, await readText(answer))
  const error = await readErrorBody(answer)
  if (error) throw new ProviderRefusal(error.status, {}, error.text)
  if (decoderOf(answer) === undefined) return (take) => answer.read(take)
  return async (take) => {
    for await (const chunk of plain(answer)) take(chunk as Buffer)
  }
}

function isOk(status: number): boolean {
  return status >= 200 && status < 300
}

async function readText(answer: Incoming): Promise<string> {
  return (await readUpTo(plain(answer), errorBodyMax)).read.toString('utf8')
}

/** Statuses of responses without a body. */
const bodiless = [204, 205, 304]

const decoders: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

function decoderOf({ headers }: Incoming): (() => Transform) | undefined {
  const encoding = (headers['content-encoding'] ?? '').trim().toLowerCase()
  return Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
}

/** The decompressed body: some servers compress although they are asked not to. */
function plain(answer: Incoming): Readable {
  const decoder = decoderOf(answer)
  // An error of any stream reaches the last one.
  return decoder ? pipeline(answer.stream(), decoder(), bounded(callLimits.bytesMax), () => {}) : answer.stream()
}

/**
 * Fails with `ModelError` after so many bytes. The watch of a call counts the bytes of the network, of which a thousand
 * times as many may be unpacked.
 */
function bounded(bytesMax: number): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > bytesMax) done(answerTooLong(bytesMax))
      else done(null, chunk)
    },
  })
}

/**
 * A body as a web stream. A body that is cut off fails like in `fetch`; one with too long an event fails, because the
 * libraries collect an event in memory however long it is.
 */
function webStream(body: Readable): ReadableStream<Uint8Array> {
  let isOver = false
  const event = measureEvents()
  return new ReadableStream({
    start(controller) {
      body.on('data', (chunk: Buffer) => {
        if (isOver) return
        if (event.bytesAfter(chunk) > eventMax) return void body.destroy(eventTooLong())
        controller.enqueue(chunk)
        if ((controller.desiredSize ?? 0) <= 0) body.pause()
      })
      body.once('end', () => {
        if (!isOver) controller.close()
      })
      body.on('error', (cause) => {
        if (!isOver) controller.error(cause instanceof ModelError ? cause : new TypeError('terminated', { cause }))
        isOver = true
      })
    },
    pull: () => void body.resume(),
    cancel() {
      isOver = true
      body.destroy()
    },
  })
}

/** Counts the bytes of the unfinished event of a stream. A blank line ends an event. */
function measureEvents(): { bytesAfter(chunk: Buffer): number } {
  let bytes = 0
  // The blank line may begin in the chunk before.
  let before: Buffer = Buffer.alloc(0)
  return {
    bytesAfter(chunk) {
      const seen = Buffer.concat([before, chunk])
      const end = Math.max(...blankLines.map((line) => seen.lastIndexOf(line)))
      bytes = end < 0 ? bytes + chunk.length : seen.length - end
      before = seen.subarray(-3)
      return bytes
    },
  }
}

const blankLines = ['\n\n', '\r\n\r\n', '\r\r']

/**
 * Some servers send errors with status 200, and a wrong base URL often answers with a web page. A body with an error
 * gets the status that it should have had; undefined for a stream.
 * @throws ModelError for another JSON body or a web page
 */
async function readErrorBody(answer: Incoming): Promise<{ status: number; text: string } | undefined> {
  const type = (answer.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== 'text/html' && !type.endsWith('json')) return undefined
  const text = await readText(answer)
  const status = statusOfErrorBody(text)
  if (status !== undefined) return { status, text }
  const hint = type === 'text/html' ? ' Check that the base URL ends in /v1.' : ''
  throw new ModelError('provider_bad_answer', `The provider answered with ${type} instead of a stream.${hint}`, {
    retryable: false,
  })
}
