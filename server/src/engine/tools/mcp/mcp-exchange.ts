import { AsyncLocalStorage } from 'node:async_hooks'
import { type EgressFetch, egressFetch } from '../../../platform/egress/egress-fetch.ts'
import type { EgressStream } from '../../../platform/egress/egress-stream.ts'
import { type Egress, EgressError, EgressRefused } from '../../../platform/egress/safe-fetch.ts'
import type { UpstreamUse } from '../../../platform/egress/connect.ts'

/** The network use of one exchange with a server, and the error of its streams. */
export interface Exchange {
  use(): UpstreamUse
  /** The original network error, which the library wraps. */
  failure: EgressError | EgressRefused | undefined
}

const exchanges = new AsyncLocalStorage<Exchange & { answers: EgressStream[]; lost: UpstreamUse }>()

/** Runs `work` and sums up the network use of all its requests. */
export function inExchange<T>(work: (exchange: Exchange) => Promise<T>): Promise<T> {
  const lost = { bytes_in: 0, bytes_out: 0 }
  const answers: EgressStream[] = []
  const use = (): UpstreamUse => answers.map((answer) => answer.use()).reduce(sum, lost)
  const exchange = { answers, lost, use, failure: undefined }
  return exchanges.run(exchange, () => work(exchange))
}

/** A guarded `fetch` for one session: only to the server's origin, with the tool's headers. */
export function sessionFetch(
  egress: Egress,
  {
    url,
    headers,
    signal,
    listens,
  }: { url: URL; headers: () => Record<string, string>; signal: AbortSignal; listens: boolean },
): EgressFetch {
  const fetch = egressFetch(egress, {
    purpose: 'tool',
    headers,
    signal,
    onAnswer: (answer) => void exchanges.getStore()?.answers.push(answer),
  })
  return async (target, init) => {
    if (new URL(target).origin !== url.origin) {
      throw new EgressRefused('address', 'the server sends its client to another origin')
    }
    // The stream of unsolicited server messages: Cadre needs none of them, and it would stay open for the whole
    // session.
    if (!listens && init?.method === 'GET' && !new Headers(init.headers).has('last-event-id')) {
      return new Response(null, { status: 405 })
    }
    const exchange = exchanges.getStore()
    const remember = (error: unknown): void => {
      if (!exchange) return
      if (error instanceof EgressError || error instanceof EgressRefused) exchange.failure = error
    }
    try {
      const response = await fetch(target, init)
      return response.body === null ? response : watched(response, response.body, remember)
    } catch (error) {
      remember(error)
      if (exchange && error instanceof EgressError) Object.assign(exchange.lost, sum(exchange.lost, error.network))
      throw error
    }
  }
}

/** The same response, with read errors reported, because the library turns them into text. */
function watched(response: Response, body: ReadableStream<Uint8Array>, onFailure: (error: unknown) => void): Response {
  const reader = body.getReader()
  const received = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          onFailure(error)
          controller.error(error)
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return new Response(received, { status: response.status, headers: response.headers })
}

function sum(a: UpstreamUse, b: UpstreamUse): UpstreamUse {
  return { bytes_in: a.bytes_in + b.bytes_in, bytes_out: a.bytes_out + b.bytes_out }
}
