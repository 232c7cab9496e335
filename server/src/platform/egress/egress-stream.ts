import { EgressError, egressFailure } from './egress-error.ts'
import { connectTimeout_ms, egressBounds, type Guard, judge } from './egress-guard.ts'
import { firstHop, type HopRequest, plainHeaders } from './egress-hop.ts'
import { EgressRefused } from './egress-rules.ts'
import { limitedAbort } from '../abort-signals.ts'
import { openUpstream, type UpstreamConnection, type UpstreamUse } from './connect.ts'

export interface EgressStreamRequest extends HopRequest {
  /** Time limit up to the end of the response; the limit of the purpose also applies. */
  timeout_ms?: number
  /** Maximum size of the response; the limit of the purpose also applies. */
  bytesMax?: number
  signal?: AbortSignal
}

/** A streamed response. Its connection closes with its body, which must be read or canceled. */
export interface EgressStream {
  status: number
  /** Lowercase names; values of a repeated header joined by `, `. */
  headers: Record<string, string>
  /** Fails with `EgressError` if the response is cut off, too long or too late, or with the signal's reason. */
  body: ReadableStream<Uint8Array>
  url: string
  /** Bytes on its connection so far. */
  use(): UpstreamUse
}

/**
 * Sends a request over a new connection to checked addresses, and returns its response once the headers are there
 * (decision D104). Redirects are not followed. Nothing is read ahead of the reader, so a response takes no more memory than
 * is requested. Throws like `Egress.fetch`.
 */
export async function openStream(
  guard: Guard,
  target: string | URL,
  request: EgressStreamRequest,
): Promise<EgressStream> {
  const { purpose, timeout_ms = Infinity, bytesMax = Infinity, signal } = request
  const bound = egressBounds[purpose]
  const connection = startConnection(Math.min(timeout_ms, bound.total_ms), signal)
  try {
    connection.ends.throwIfAborted()
    const hop = firstHop(guard.rules, target, request)
    const addresses = await judge(guard, hop.url, purpose, connection.ends)
    const upstream = await openUpstream(hop.url.origin, { addresses, connectTimeout_ms })
    connection.opened(upstream)
    const answer = await upstream.client.request({
      path: hop.url.pathname + hop.url.search,
      method: hop.method,
      headers: hop.headers,
      body: hop.body ?? null,
      signal: connection.ends,
    })
    // The reader gets the error from the iterator; without a listener an unread aborted body would end the process.
    answer.body.on('error', () => undefined)
    return {
      status: answer.statusCode,
      headers: plainHeaders(answer.headers),
      body: readable(answer.body, Math.min(bytesMax, bound.bytesMax), connection),
      url: hop.url.href,
      use: connection.used,
    }
  } catch (error) {
    await connection.finish()
    throw connection.explain(error)
  }
}

/** One connection with its time limit; it finishes once, for any reason. */
interface Connection {
  /** Aborted by the caller or by time. */
  ends: AbortSignal
  opened(upstream: UpstreamConnection): void
  used(): UpstreamUse
  finish(): Promise<void>
  explain(error: unknown): Error
  network: UpstreamUse
}

function startConnection(timeout_ms: number, signal: AbortSignal | undefined): Connection {
  const network: UpstreamUse = { bytes_in: 0, bytes_out: 0 }
  const limit = limitedAbort(timeout_ms, signal)
  const ends = limit.ends.signal
  let upstream: UpstreamConnection | undefined
  let isFinished = false
  const finish = async (): Promise<void> => {
    if (isFinished) return
    isFinished = true
    limit.release()
    ends.removeEventListener('abort', onEnd)
    if (!upstream) return
    Object.assign(network, upstream.use())
    await upstream.destroy()
  }
  const onEnd = (): void => void finish()
  // An unread response must not keep its connection either.
  ends.addEventListener('abort', onEnd, { once: true })
  return {
    ends,
    network,
    opened: (made) => (upstream = made),
    used: () => (isFinished || !upstream ? network : upstream.use()),
    finish,
    explain: (error) => {
      if (signal?.aborted) return signal.reason as Error
      if (error instanceof EgressRefused || error instanceof EgressError) return error
      if (ends.aborted) return new EgressError('timed_out', 'no complete answer in time', { network })
      return egressFailure(error, network)
    },
  }
}

function readable(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
  connection: Connection,
): ReadableStream<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  let length = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await chunks.next()
          if (next.done) {
            await connection.finish()
            return controller.close()
          }
          length += next.value.length
          if (length > bytesMax) {
            throw new EgressError('answer_too_large', `the answer is longer than ${bytesMax} bytes`, connection)
          }
          controller.enqueue(next.value)
        } catch (error) {
          await connection.finish()
          controller.error(connection.explain(error))
        }
      },
      cancel: () => connection.finish(),
    },
    { highWaterMark: 0 },
  )
}
