import { Readable } from 'node:stream'
import type { Client, Dispatcher } from 'undici'
import { plainHeaders } from './egress-hop.ts'

/** What is sent; nothing of it is read later. */
export interface ExchangeRequest {
  path: string
  method: string
  headers: Record<string, string>
  body: string | Uint8Array | null
  /** Ends the exchange at any moment; its callers get the reason. */
  signal: AbortSignal | null
}

/** A response whose head is there. Its body must be read or cancelled: until then its connection is taken. */
export interface Incoming {
  status: number
  /** Lowercase names; values of a repeated header joined by `, `. */
  headers: Record<string, string>
  /**
   * Hands over the body piece by piece, in the moment in which it comes. Rejects with what broke the connection, with the reason of the
   * signal, or with what `take` throws, which ends the connection.
   */
  read(take: (chunk: Buffer) => void): Promise<void>
  /** The body for a reader that may be slower than the connection. */
  stream(): Readable
  /** Ends the connection without the rest of the body. */
  cancel(): void
}

/** Bytes of a body that may come before there is a reader. */
const waitingMax_bytes = 64 * 1024

const noReader = new Error('the response was not read')

/**
 * Sends a request on a connection, and resolves once the head of its response is there. A request of the driver's own makes a stream, an
 * iterator and a dozen listeners for each response; this makes one object.
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
  /** Why it was ended from here. */
  #aborted: Error | undefined
  #waiting: Buffer[] = []
  #waiting_bytes = 0
  #take: ((chunk: Buffer) => void) | undefined
  #over: PromiseWithResolvers<void> | undefined
  #isOver = false
  #error: Error | undefined

  /** Made elsewhere, because V8 would place a function that is written here in the old generation: see `BoundedQuery`. */
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
