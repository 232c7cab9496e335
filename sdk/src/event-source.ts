import { backoff, pause } from './backoff.ts'
import { APIConnectionError, APIError } from './errors.ts'
import type { Http, RequestOptions } from './http.ts'
import { FrameReader, type Frame } from './frames.ts'

/** The service writes at least every 15 seconds: after this long without a byte the line is dead. */
const silenceMax_ms = 45_000
/** After a connection that has sent something, and after the first that has not; then twice as long each time. */
const reconnect_ms = { again: 100, first: 1000, max: 15_000 }
/** A connection that held this long was good, even if there was nothing to tell. */
const goodConnection_ms = 30_000
/** Connections that fail one after another, until a stream is given up: some four minutes. */
const failuresMax = 20

/** State of a stream's connection, to be displayed. */
export type StreamState = 'connecting' | 'open' | 'reconnecting'

/** What streams take. `maxRetries` counts connections that fail one after another; `timeout_ms` bounds the wait for each. */
export interface StreamOptions extends Omit<RequestOptions, 'idempotencyKey' | 'ifMatch'> {
  /** Called at every change. */
  onState?: ((state: StreamState) => void) | undefined
}

interface Source {
  path: string
  /** What `Last-Event-ID` says at first. */
  after?: string | undefined
  /** Asked when the service has ended a connection: whether that was the end of it all. */
  isDone: () => boolean
}

/**
 * Reads a stream of server-sent events to its end, over as many connections as that takes: each goes on after the last
 * frame that was given out whole. Refusals that would come again are thrown.
 */
export async function* readEvents(http: Http, source: Source, options: StreamOptions = {}): AsyncGenerator<Frame> {
  const { onState = () => {}, maxRetries = failuresMax, signal, headers } = options
  let last = source.after
  let failures = 0
  onState('connecting')
  for (;;) {
    const line = new AbortController()
    const began = Date.now()
    let frames = 0
    let broken: Error | undefined
    const request = { method: 'GET', path: source.path, accept: 'text/event-stream' }
    try {
      const response = await http.open(request, {
        ...options,
        maxRetries: 0,
        signal: signal ? AbortSignal.any([signal, line.signal]) : line.signal,
        headers: { ...headers, ...(last === undefined ? {} : { 'last-event-id': last }) },
      })
      onState('open')
      for await (const frame of framesOf(response, line)) {
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
      line.abort()
    }
    if (source.isDone()) return
    // The first frame tells how things stand, on every connection: only what follows is news.
    failures = frames > 1 || Date.now() - began > goodConnection_ms ? 0 : failures + 1
    if (failures > maxRetries) throw broken ?? new APIConnectionError('The stream ends again and again.')
    onState('reconnecting')
    const first_ms = failures === 0 ? reconnect_ms.again : reconnect_ms.first
    await pause(backoff(Math.max(1, failures), first_ms, reconnect_ms.max), signal)
  }
}

/** The frames of a response; one that is cut off in the middle is dropped. Throws where nothing comes for too long. */
async function* framesOf(response: Response, line: AbortController): AsyncGenerator<Frame> {
  const reader = response.body?.getReader()
  if (!reader) throw new APIConnectionError('The stream has no body.')
  const frames = new FrameReader()
  const decoder = new TextDecoder()
  let timer = setTimeout(() => line.abort(), silenceMax_ms)
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new APIConnectionError('The stream broke off.', { cause })
      })
      if (done) return
      clearTimeout(timer)
      timer = setTimeout(() => line.abort(), silenceMax_ms)
      yield* frames.read(decoder.decode(value, { stream: true }))
    }
  } finally {
    clearTimeout(timer)
    await reader.cancel().catch(() => {})
  }
}

/** Whether a failure may be gone with the next connection. */
function isTransient(error: unknown): boolean {
  if (error instanceof APIError) return error.status === 408 || error.status === 429 || error.status >= 500
  return error instanceof APIConnectionError
}
