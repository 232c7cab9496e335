import { pause, retryDelay } from './backoff.ts'
import { APIConnectionError, apiError, APITimeoutError, CadreError } from './errors.ts'

/** What every method takes beside its own arguments. */
export interface RequestOptions {
  /** Ends the request; its reason is thrown. */
  signal?: AbortSignal | undefined
  /** How long one try may take. The seconds of a `wait` come on top. */
  timeout_ms?: number | undefined
  /** Tries after the first one, at most. */
  maxRetries?: number | undefined
  /** For what must happen once also where the whole program is run again; else one is made for each request. */
  idempotencyKey?: string | undefined
  /** An `etag`: refuses with `PreconditionFailedError` where the resource is of another revision. */
  ifMatch?: string | undefined
  headers?: Record<string, string> | undefined
}

/** Takes what is to be logged; `console` will do. No secrets come here, and no bodies. */
export interface Logger {
  debug(message: string, fields: Record<string, unknown>): void
  /** What someone should act on: a part of the API that will be removed. A client logs each once. */
  warn?(message: string, fields: Record<string, unknown>): void
}

/** Bytes to be sent: a file, text, or a stream. */
export type Content = Blob | Uint8Array<ArrayBuffer> | ArrayBuffer | ReadableStream<Uint8Array> | string

/** A request before it is sent. */
export interface Outgoing {
  method: string
  /** From `/api/v1` on, with its parameters in place. */
  path: string
  query?: object | undefined
  body?: object | undefined
  /** Sent as it is, instead of a body. */
  content?: Content | undefined
  /** The body is sent as a form (OAuth), not as JSON. */
  isForm?: boolean
  /** Of a POST: whether the service does it once for its idempotency key, however often it comes. */
  isOnce?: boolean
  accept?: string
}

/** An answer with a status below 300. */
export interface Answered<T> {
  data: T
  response: Response
  requestId: string | null
  /** The revision, for `ifMatch`; null where the operation has none. */
  etag: string | null
}

export interface HttpOptions {
  /** Of origin and base path; without a slash at its end. */
  base: string
  /** Headers that say who asks, made for each try. */
  credentials: () => Record<string, string> | Promise<Record<string, string>>
  timeout_ms: number
  maxRetries: number
  fetch: typeof fetch
  logger?: Logger | undefined
  headers: Record<string, string>
}

/** Announcements of removals that one client remembers; more are not logged. */
const announcementsMax = 100

/** Sends requests, and again where that is safe. */
export class Http {
  readonly #options: HttpOptions
  /** Announcements that were logged already. */
  readonly #announced = new Set<string>()

  constructor(options: HttpOptions) {
    this.#options = options
  }

  /** What sends requests, as the client was given it. */
  get fetch(): typeof fetch {
    return this.#options.fetch
  }

  /** The address of a request. */
  url(path: string, query: object = {}): string {
    const search = new URLSearchParams(textMembers(query)).toString()
    return `${this.#options.base}${path}${search === '' ? '' : `${path.includes('?') ? '&' : '?'}${search}`}`
  }

  /** Sends a request and reads its answer: JSON where it is any, else its text. */
  json<T>(request: Outgoing, options: RequestOptions = {}): Promise<Answered<T>> {
    return this.#tries(request, options, readBody) as Promise<Answered<T>>
  }

  /** Sends a request and gives its answer unread. `signal` also ends the reading; `timeout_ms` only bounds the wait for it. */
  async open(request: Outgoing, options: RequestOptions = {}): Promise<Response> {
    const { response } = await this.#tries(request, options, () => Promise.resolve(undefined))
    return response
  }

  async #tries<T>(
    request: Outgoing,
    options: RequestOptions,
    read: (response: Response) => Promise<T>,
  ): Promise<Answered<T>> {
    // A stream can be read once.
    const maxRetries = request.content instanceof ReadableStream ? 0 : (options.maxRetries ?? this.#options.maxRetries)
    // The same key for every try: that is what makes them one.
    const key = request.isOnce ? (options.idempotencyKey ?? crypto.randomUUID()) : options.idempotencyKey
    const isRepeatable = request.method !== 'POST' || key !== undefined
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#try(request, { ...options, idempotencyKey: key }, attempt, read)
      } catch (error) {
        const delay_ms = attempt > maxRetries ? undefined : retryDelay(error, attempt, isRepeatable)
        if (delay_ms === undefined) throw error
        this.#options.logger?.debug('retrying', { method: request.method, path: request.path, attempt, delay_ms })
        await pause(delay_ms, options.signal)
      }
    }
  }

  async #try<T>(
    request: Outgoing,
    options: RequestOptions,
    attempt: number,
    read: (response: Response) => Promise<T>,
  ): Promise<Answered<T>> {
    const { method, path, query } = request
    options.signal?.throwIfAborted()
    const headers = await this.#headers(request, options)
    const timeout_ms = (options.timeout_ms ?? this.#options.timeout_ms) + waitOf(query) * 1000
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), timeout_ms)
    const began = Date.now()
    try {
      const response = await this.#options.fetch(this.url(path, query), {
        method,
        headers,
        // Cookies and API keys are sent to the service only, never to an address in a response.
        credentials: 'same-origin',
        redirect: 'manual',
        signal: options.signal ? AbortSignal.any([options.signal, late.signal]) : late.signal,
        ...bodyOf(request),
      })
      const requestId = response.headers.get('x-request-id')
      this.#options.logger?.debug('answered', {
        method,
        path,
        status: response.status,
        request_id: requestId,
        duration_ms: Date.now() - began,
        attempt,
      })
      this.#logDeprecation(method, path, response.headers)
      if (!response.ok) throw await this.#refusal(response, attempt)
      return { data: await read(response), response, requestId, etag: response.headers.get('etag') }
    } catch (error) {
      options.signal?.throwIfAborted()
      if (late.signal.aborted)
        throw new APITimeoutError(`No answer to ${method} ${path} within ${timeout_ms} ms.`, { cause: error })
      if (error instanceof CadreError) throw error
      throw new APIConnectionError(`The connection for ${method} ${path} failed: ${reasonOf(error)}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Logs once what the service announces of a request: that it will be removed (RFC 9745, RFC 8594). */
  #logDeprecation(method: string, path: string, headers: Headers): void {
    const [deprecation, sunset, link] = ['deprecation', 'sunset', 'link'].map((name) => headers.get(name))
    if (deprecation === null || deprecation === undefined) return
    const announcement = [deprecation, sunset, link].join(' ')
    if (this.#announced.has(announcement) || this.#announced.size >= announcementsMax) return
    this.#announced.add(announcement)
    const end = sunset ? ` after ${sunset}` : ''
    const where = /<([^<>]*)>[^,<]*rel="?deprecation"?/.exec(link ?? '')?.[1]
    this.#options.logger?.warn?.(
      `${method} ${path} uses a part of the API that will be removed${end}${where ? `; see ${where}` : ''}`,
      { method, path, deprecation, sunset },
    )
  }

  async #headers({ accept, body, content, isForm }: Outgoing, options: RequestOptions): Promise<Headers> {
    const headers = new Headers({
      accept: accept ?? 'application/json',
      ...(await this.#options.credentials()),
      ...this.#options.headers,
      ...options.headers,
    })
    if (body !== undefined)
      headers.set('content-type', isForm ? 'application/x-www-form-urlencoded' : 'application/json')
    if (content !== undefined && !headers.has('content-type'))
      headers.set('content-type', (content instanceof Blob && content.type) || 'application/octet-stream')
    if (options.idempotencyKey !== undefined) headers.set('idempotency-key', options.idempotencyKey)
    if (options.ifMatch !== undefined) headers.set('if-match', options.ifMatch)
    return headers
  }

  async #refusal(response: Response, attempts: number): Promise<Error> {
    const { status, headers, type } = response
    if (type === 'opaqueredirect' || (status >= 300 && status < 400)) {
      const target = headers.get('location') ?? 'another address'
      return new CadreError(`The service sends its callers to ${target}: that must be the base URL.`)
    }
    return apiError({ status, headers, body: await readBody(response), attempts })
  }
}

async function readBody(response: Response): Promise<unknown> {
  // There was nothing to give.
  if (response.status === 204) return undefined
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('application/json')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    // Of an error the status says enough: what stands before the service may have cut it.
    if (!response.ok) return text
    throw new APIConnectionError('The answer is not the JSON that it says it is.', { cause })
  }
}

function bodyOf(request: Outgoing): RequestInit {
  const { body, content } = request
  // A stream is sent while the answer may begin already: browsers and Node require that option.
  if (content !== undefined) return { body: content, ...(content instanceof ReadableStream ? { duplex: 'half' } : {}) }
  return body === undefined ? {} : { body: bodyText(request, body) }
}

function bodyText({ isForm }: Outgoing, body: object): string {
  return isForm ? new URLSearchParams(textMembers(body)).toString() : JSON.stringify(body)
}

/** Members that are there, as text. */
function textMembers(members: object): Record<string, string> {
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}

/** Seconds that the service may wait before it answers. */
function waitOf(query: object | undefined): number {
  return query && 'wait' in query && typeof query.wait === 'number' ? query.wait : 0
}

/** Why a connection failed: what the platform knows stands in the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message
}
