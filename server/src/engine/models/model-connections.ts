import { pipeline, type Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { exchange, type Incoming } from '../../platform/egress/exchange.ts'
import { openUpstream, type UpstreamConnection } from '../../platform/egress/connect.ts'
import { ModelError, type NetworkUse } from './model.ts'
import { ProviderRefusal, statusOfErrorBody } from './model-errors.ts'
import type { ProviderNetwork, ReadBody } from './providers/adapter.ts'
import { readUpTo } from '../../platform/read-up-to.ts'

/** The network of one model call, and what it cost. */
export interface ModelCallConnection extends ProviderNetwork {
  /** Bytes that crossed the network since the call began. */
  use(): NetworkUse
  /** Returns the connection to the pool if its answer was read to the end; ends it otherwise. */
  end(): Promise<void>
}

/** Bound of resolving, connecting and TLS together. */
const connectTimeout_ms = 10_000
/** Idle connections kept for the next call, for each origin. They close after 4 s. */
const idleMax = 16
/** A provider that answers with JSON in place of a stream is read up to here, to learn what it complains about. */
const errorBodyMax = 64 * 1024

/** Addresses that an origin may be reached at; undefined where nothing is judged. Throws where it may not be reached. */
export type JudgeOrigin = (origin: string) => Promise<readonly string[] | undefined>

const trusted: JudgeOrigin = async () => undefined

/**
 * Makes the way to providers. Those that the operator configured are trusted, so nothing is judged and they may be on this machine;
 * for those of organizations `judge` decides, before each connection. There is no proxy from the environment, no redirect is
 * followed, and every byte is counted. A call has a connection to itself while it lasts.
 */
export function makeModelConnections(judge: JudgeOrigin = trusted): {
  /** Nothing is sent before `ready` resolves. */
  begin(ready?: Promise<void>): ModelCallConnection
} {
  const idle = new Map<string, UpstreamConnection[]>()
  return {
    begin: (ready) => {
      const used: { connection: UpstreamConnection; origin: string; before: NetworkUse }[] = []
      const connect = async ({ origin }: URL): Promise<UpstreamConnection> => {
        const kept = idle.get(origin)?.pop()
        // One that was closed would connect to addresses that were judged long ago.
        const isOpen = kept?.client.stats.connected === true
        if (kept && !isOpen) await kept.destroy()
        const connection = kept && isOpen ? kept : await open(origin, judge)
        used.push({ connection, origin, before: connection.use() })
        return connection
      }
      return {
        // The libraries hand over a string and the members of `init` that both kinds of fetch know.
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
          for (const { connection, origin } of used) {
            const waiting = idle.get(origin) ?? []
            idle.set(origin, waiting)
            const isFree = !connection.client.destroyed && connection.client.stats.size === 0
            if (isFree && waiting.length < idleMax) waiting.push(connection)
            else await connection.destroy()
          }
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
 * Sends a request as `fetch` does, for what the libraries use of it: a URL, headers by name, a text as the body, a signal. The
 * whole of `fetch` costs twice the processor time of the request itself.
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

/** A response as the libraries take it. */
async function toResponse(answer: Incoming): Promise<Response> {
  const { status, headers } = answer
  if (bodiless.includes(status)) {
    await answer.read(() => {})
    return new Response(null, { status, headers })
  }
  const complaint = isOk(status) ? await readComplaint(answer) : undefined
  if (!complaint) return new Response(webStream(plain(answer)), { status, headers })
  return new Response(complaint.text, { status: complaint.status, headers: { 'content-type': 'application/json' } })
}

/** The body of a response that is a stream. Throws `ProviderRefusal` for any other. */
async function readerOf(answer: Incoming): Promise<ReadBody> {
  const { status, headers } = answer
  if (!isOk(status)) throw new ProviderRefusal(status, headers, await readText(answer))
  const complaint = await readComplaint(answer)
  if (complaint) throw new ProviderRefusal(complaint.status, {}, complaint.text)
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

/** Statuses of answers that have no body. */
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

/** A body as it was before its server compressed it, as some do although they are asked not to. */
function plain(answer: Incoming): Readable {
  const decoder = decoderOf(answer)
  // The last of the two fails for both.
  return decoder ? pipeline(answer.stream(), decoder(), () => {}) : answer.stream()
}

/** The body of an answer as the libraries read it. What is cut off fails as in `fetch`. */
function webStream(body: Readable): ReadableStream<Uint8Array> {
  let isOver = false
  return new ReadableStream({
    start(controller) {
      body.on('data', (chunk: Buffer) => {
        if (isOver) return
        controller.enqueue(chunk)
        if ((controller.desiredSize ?? 0) <= 0) body.pause()
      })
      body.once('end', () => {
        if (!isOver) controller.close()
      })
      body.on('error', (cause) => {
        if (!isOver) controller.error(new TypeError('terminated', { cause }))
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

/**
 * Some servers complain with status 200, and a wrong base URL often answers with a page: neither is a stream. A body
 * that names an error gets the status that it should have had; undefined where the answer is a stream.
 */
async function readComplaint(answer: Incoming): Promise<{ status: number; text: string } | undefined> {
  const type = (answer.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== 'text/html' && !type.endsWith('json')) return undefined
  const text = await readText(answer)
  const status = statusOfErrorBody(text)
  if (status !== undefined) return { status, text }
  const hint = type === 'text/html' ? ' Is the base URL the one that ends in /v1?' : ''
  throw new ModelError('provider_bad_answer', `The provider answered with ${type} instead of a stream.${hint}`, {
    retryable: false,
  })
}
