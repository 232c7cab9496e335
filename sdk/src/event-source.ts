import { backoff, pause } from './backoff.ts'
import { APIConnectionError, APIError } from './errors.ts'
import type { Http, RequestOptions } from './http.ts'
import { FrameReader, type Frame } from './frames.ts'

/** The service sends something at least every 15 seconds: after this time without a byte the connection is dead. */
const silenceMax_ms = 45_000
/** Delay after a connection with events, and after the first one without; then doubled each time. */
const reconnect_ms = { again: 100, first: 1000, max: 15_000 }
/** A connection that lasted this long counts as successful, even without events. */
const goodConnection_ms = 30_000
/** Consecutive failed connections after which a stream fails, after about four minutes. */
const failuresMax = 20

/** State of a stream's connection, for display. */
export type StreamState = 'connecting' | 'open' | 'reconnecting'

/** Options of streams. `maxRetries` limits consecutive failed connections; `timeout_ms` limits the wait for each. */
export interface StreamOptions extends Omit<RequestOptions, 'idempotencyKey' | 'ifMatch'> {
  /** Called with every change of the state. */
  onState?: ((state: StreamState) => void) | undefined
}

interface Source {
  path: string
  /** The first `Last-Event-ID`. */
  after?: string | undefined
  /** Whether the stream is complete, when the service has ended a connection. */
  isDone: () => boolean
}

/**
 * Reads a stream of server-sent events to its end, and reconnects as needed: each connection resumes after the last complete
 * frame. Errors that are not transient are thrown.
 */
export async function* readEvents(http: Http, source: Source, options: StreamOptions = {}): AsyncGenerator<Frame> {
  const { onState = () => {}, maxRetries = failuresMax, signal, headers } = options
  let last = source.after
  let failures = 0
  onState('connecting')
  for (;;) {
    const connection = new AbortController()
    const began = Date.now()
    let frames = 0
    let broken: Error | undefined
    const request = { method: 'GET', path: source.path, accept: 'text/event-stream' }
    try {
      const response = await http.open(request, {
        ...options,
        maxRetries: 0,
        signal: signal ? AbortSignal.any([signal, connection.signal]) : connection.signal,
        headers: { ...headers, ...(last === undefined ? {} : { 'last-event-id': last }) },
      })
      onState('open')
      for await (const frame of framesOf(response, connection)) {
        frames++
        if (frame.id !== undefined) last = frame.id
        if (frame.data !== '') yield frame
        if (source.isDone()) return
      }
    } catch (error) {
      signal?.throwIfAborted()
      if (!isTransient(error)) throw error
      broken = error as Error
    } finally {
      connection.abort()
    }
    if (source.isDone()) return
    // The first frame of every connection is a snapshot, so only further ones count as progress.
    failures = frames > 1 || Date.now() - began > goodConnection_ms ? 0 : failures + 1
    if (failures > maxRetries)
      throw broken ?? new APIConnectionError(`The service ended ${failures} connections of the stream in a row.`)
    onState('reconnecting')
    const first_ms = failures === 0 ? reconnect_ms.again : reconnect_ms.first
    await pause(backoff(Math.max(1, failures), first_ms, reconnect_ms.max), signal)
  }
}

/** The frames of a response; an incomplete one at its end is dropped. Throws after too long a silence. */
async function* framesOf(response: Response, connection: AbortController): AsyncGenerator<Frame> {
  const reader = response.body?.getReader()
  if (!reader) throw new APIConnectionError('The stream has no body.')
  const frames = new FrameReader()
  const decoder = new TextDecoder()
  let timer = setTimeout(() => connection.abort(), silenceMax_ms)
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new APIConnectionError('The connection of the stream was lost.', { cause })
      })
      if (done) return
      clearTimeout(timer)
      timer = setTimeout(() => connection.abort(), silenceMax_ms)
      yield* frames.read(decoder.decode(value, { stream: true }))
    }
  } finally {
    clearTimeout(timer)
    await reader.cancel().catch(() => {})
  }
}

/** Whether the next connection may succeed. */
function isTransient(error: unknown): boolean {
  if (error instanceof APIError) return error.status === 408 || error.status === 429 || error.status >= 500
  return error instanceof APIConnectionError
}
