import { EgressError, egressFailure } from './egress-error.ts'
import { connectTimeout_ms, egressBounds, type Guard, judge } from './egress-guard.ts'
import { firstHop, type HopRequest, plainHeaders } from './egress-hop.ts'
import { EgressRefused } from './egress-rules.ts'
import { limitedAbort } from '../abort-signals.ts'
import { openUpstream, type UpstreamConnection, type UpstreamUse } from './connect.ts'

export interface EgressStreamRequest extends HopRequest {
  /** Bound from the request to the end of its answer; the purpose's own bound where that is shorter. */
  timeout_ms?: number
  /** Bytes of the answer; the purpose's own bound where that is less. */
  bytesMax?: number
  signal?: AbortSignal
}

/** An answer that is read as it comes. Its connection ends with its body: read it, or cancel it. */
export interface EgressStream {
  status: number
  /** Lowercase names; values of a repeated header joined by `, `. */
  headers: Record<string, string>
  /** Fails with `EgressError` where the answer breaks off, is too long or too late, and with the signal's reason. */
  body: ReadableStream<Uint8Array>
  url: string
  /** What crossed its connection so far. */
  use(): UpstreamUse
}

/**
 * Sends a request over a new connection to checked addresses, and returns its response once the headers are there
 * (decision D104). Redirects are responses and not followed. Nothing is read ahead of the reader, so a response costs
 * no more memory than is asked for. Throws as `Egress.fetch` does.
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

/** One connection, its time limit, and its end, which happens once for any cause. */
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
  // Also without a reader: an unread response must not keep its connection.
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
