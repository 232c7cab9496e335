import { pipeline, type Readable, type Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib'
import { plainHeaders } from '../../platform/egress/egress-hop.ts'
import { openUpstream, type UpstreamConnection } from '../../platform/egress/connect.ts'
import { ModelError, type NetworkUse } from './model.ts'
import { statusOfErrorBody } from './model-errors.ts'
import { readUpTo } from '../../platform/read-up-to.ts'

/** The network of one model call: a `fetch` for the provider's library, and what it cost. */
export interface ModelCallConnection {
  fetch: typeof globalThis.fetch
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

/**
 * Makes the way to the providers that the operator configured. They are trusted, so nothing is judged (unlike
 * `platform/egress/safe-fetch.ts`) and they may be on this machine; but there is no proxy from the environment, no redirect is
 * followed, and every byte is counted. A call has a connection to itself while it lasts.
 */
export function makeModelConnections(): { begin(): ModelCallConnection } {
  const idle = new Map<string, UpstreamConnection[]>()
  return {
    begin: () => {
      const used: { connection: UpstreamConnection; origin: string; before: NetworkUse }[] = []
      return {
        fetch: (async (input: string | URL, init?: RequestInit) => {
          const { origin } = new URL(input)
          const connection = idle.get(origin)?.pop() ?? (await openUpstream(origin, { connectTimeout_ms }))
          used.push({ connection, origin, before: connection.use() })
          return send(connection, input, init)
          // The libraries hand over a string and the members of `init` that both kinds of fetch know.
        }) as typeof globalThis.fetch,
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

/**
 * Sends a request as `fetch` does, for what the libraries use of it: a URL, headers by name, a text as the body, a signal. The
 * whole of `fetch` costs twice the processor time of the request itself.
 */
async function send(
  { client }: UpstreamConnection,
  input: string | URL,
  init: RequestInit | undefined,
): Promise<Response> {
  const { pathname, search } = new URL(input)
  const { statusCode, headers, body } = await client
    .request({
      path: pathname + search,
      method: init?.method ?? 'GET',
      headers: { ...(init?.headers as Record<string, string>), 'accept-encoding': 'identity' },
      body: (init?.body as string | null | undefined) ?? null,
      signal: init?.signal ?? null,
    })
    .catch((error: unknown) => {
      init?.signal?.throwIfAborted()
      throw new TypeError('fetch failed', { cause: error })
    })
  const hasBody = !bodiless.includes(statusCode)
  if (!hasBody) body.resume()
  const response = new Response(hasBody ? webStream(plain(body, headers['content-encoding'])) : null, {
    status: statusCode,
    headers: plainHeaders(headers),
  })
  return response.ok ? requireStream(response) : response
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

/** A body as it was before its server compressed it, as some do although they are asked not to. */
function plain(body: Readable, encoding: string | string[] | undefined): Readable {
  const decoder = typeof encoding === 'string' ? decoders[encoding.trim().toLowerCase()] : undefined
  // The last of the two fails for both.
  return decoder ? pipeline(body, decoder(), () => {}) : body
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
 * that names an error becomes a response with the status that it should have had.
 */
async function requireStream(response: Response): Promise<Response> {
  const type = (response.headers.get('content-type') ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
  if (type !== 'text/html' && !type.endsWith('json')) return response
  const text = response.body ? (await readUpTo(response.body, errorBodyMax)).read.toString('utf8') : ''
  const status = statusOfErrorBody(text)
  if (status !== undefined) return new Response(text, { status, headers: { 'content-type': 'application/json' } })
  const hint = type === 'text/html' ? ' Is the base URL the one that ends in /v1?' : ''
  throw new ModelError('provider_bad_answer', `The provider answered with ${type} instead of a stream.${hint}`, {
    retryable: false,
  })
}
