import { Readable } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import { plainHeaders } from './egress-hop.ts'

/** The request, complete before it is sent. */
export interface ExchangeRequest {
  path: string
  method: string
  headers: Record<string, string>
  body: string | Uint8Array | null
  /** Aborts the exchange at any time, with the signal's reason. */
  signal: AbortSignal | null
}

/** A response with its head. Its body must be read or canceled; until then its connection is busy. */
export interface Incoming {
  status: number
  /** Lowercase names; values of a repeated header joined by `, `. */
  headers: Record<string, string>
  /**
   * Passes each piece of the body to `take` as it arrives. Rejects with the error of the connection, the signal's reason, or
   * the error of `take`, which also closes the connection.
   */
  read(take: (chunk: Buffer) => void): Promise<void>
  /** The body as a stream with backpressure, for a reader that may be slower than the connection. */
  stream(): Readable
  /** Closes the connection without reading the rest of the body. */
  cancel(): void
}

/** Bytes of a body that are buffered before there is a reader. */
const waitingMax_bytes = 64 * 1024

const noReader = new Error('the response was not read')

/**
 * Sends a request on a connection, and resolves once the head of its response is there. undici's own `request` makes a
 * stream, an iterator and a dozen listeners for each response; this makes one object.
 */
export function exchange(client: Client, { signal, ...request }: ExchangeRequest): Promise<Incoming> {
  const one = new Exchange()
  if (signal) one.endWith(signal, () => one.abort(signal.reason as Error))
  client.dispatch(request, one)
  return one.head.promise
}

class Exchange implements Incoming, Dispatcher.DispatchHandler {
  readonly head = Promise.withResolvers<Incoming>()
  status = 0
  headers: Record<string, string> = {}
  #signal: AbortSignal | undefined
  #onAbort: (() => void) | undefined
  #controller: Dispatcher.DispatchController | undefined
  /** The reason of an abort by the caller. */
  #aborted: Error | undefined
  #waiting: Buffer[] = []
  #waiting_bytes = 0
  #take: ((chunk: Buffer) => void) | undefined
  #over: PromiseWithResolvers<void> | undefined
  #isOver = false
  #error: Error | undefined

  /** `onAbort` is passed in because V8 would place a function that is created here in the old generation (`BoundedQuery`). */
  endWith(signal: AbortSignal, onAbort: () => void): void {
    if (signal.aborted) return onAbort()
    this.#signal = signal
    this.#onAbort = onAbort
    signal.addEventListener('abort', onAbort)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#aborted) controller.abort(this.#aborted)
    else this.#controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return
    this.status = status
    this.headers = plainHeaders(headers)
    this.head.resolve(this)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#take) return this.#take(chunk)
    this.#waiting.push(chunk)
    this.#waiting_bytes += chunk.length
    if (this.#waiting_bytes > waitingMax_bytes) controller.pause()
  }

  onResponseEnd(): void {
    this.#end(undefined)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(this.#aborted ?? error)
  }

  async read(take: (chunk: Buffer) => void): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    try {
      for (const chunk of waiting) take(chunk)
    } catch (error) {
      this.abort(error as Error)
      throw error
    }
    if (this.#error) throw this.#error
    if (this.#isOver) return
    this.#take = take
    this.#over = Promise.withResolvers()
    this.#controller!.resume()
    await this.#over.promise
  }

  stream(): Readable {
    const stream = new Readable({
      read: () => this.#controller!.resume(),
      destroy: (error, destroyed) => {
        this.cancel()
        destroyed(error)
      },
    })
    this.read((chunk) => {
      if (!stream.push(chunk)) this.#controller!.pause()
    }).then(
      () => stream.push(null),
      (error: Error) => stream.destroy(error),
    )
    return stream
  }

  cancel(): void {
    this.abort(noReader)
  }

  abort(reason: Error): void {
    if (this.#isOver || this.#aborted) return
    this.#aborted = reason
    if (this.#controller) this.#controller.abort(reason)
    else this.head.reject(reason)
  }

  #end(error: Error | undefined): void {
    this.#isOver = true
    this.#error = error
    if (this.#onAbort) this.#signal?.removeEventListener('abort', this.#onAbort)
    if (this.status === 0) this.head.reject(error ?? new Error('the response has no head'))
    else if (error) this.#over?.reject(error)
    else this.#over?.resolve()
  }
}
