import { pause, retryDelay } from './backoff.ts'
import { APIConnectionError, apiError, APITimeoutError, CadreError } from './errors.ts'

/** Options of every method. */
export interface RequestOptions {
  /** Aborts the request; its reason is thrown. */
  signal?: AbortSignal | undefined
  /** Timeout of one attempt. The seconds of `wait` are added. */
  timeout_ms?: number | undefined
  /** Maximum number of attempts after the first one. */
  maxRetries?: number | undefined
  /** Set it if the operation must happen once even if the program runs again. By default each request gets a new one. */
  idempotencyKey?: string | undefined
  /** An `etag`: throws `PreconditionFailedError` if the resource has another revision. */
  ifMatch?: string | undefined
  headers?: Record<string, string> | undefined
}

/** A logger, such as `console`. It gets no secrets and no bodies. */
export interface Logger {
  debug(message: string, fields: Record<string, unknown>): void
  /** Called once for each part of the API in use that will be removed. */
  warn?(message: string, fields: Record<string, unknown>): void
}

/** Content to send: a file, text, or a stream. */
export type Content = Blob | Uint8Array<ArrayBuffer> | ArrayBuffer | ReadableStream<Uint8Array> | string

/** A request before it is sent. */
export interface Outgoing {
  method: string
  /** The path with its parameters, without the base URL. */
  path: string
  query?: object | undefined
  body?: object | undefined
  /** Sent unchanged, instead of a body. */
  content?: Content | undefined
  /** The body is sent as a form (OAuth), not as JSON. */
  isForm?: boolean
  /** Of a POST: whether the service honors an idempotency key for it. */
  isOnce?: boolean
  accept?: string
}

/** A successful response. */
export interface Answered<T> {
  data: T
  response: Response
  requestId: string | null
  /** The revision, for `ifMatch`; null if the resource has none. */
  etag: string | null
}

export interface HttpOptions {
  /** Origin and base path, without a slash at the end. */
  base: string
  /** Headers with the credential, made for each attempt. */
  credentials: () => Record<string, string> | Promise<Record<string, string>>
  timeout_ms: number
  maxRetries: number
  fetch: typeof fetch
  logger?: Logger | undefined
  headers: Record<string, string>
}

/** Maximum number of deprecations that a client logs. */
const announcementsMax = 100

/** Sends requests, and retries if that is safe. */
export class Http {
  readonly #options: HttpOptions
  /** Deprecations that were already logged. */
  readonly #announced = new Set<string>()

  constructor(options: HttpOptions) {
    this.#options = options
  }

  /** The client's `fetch`. */
  get fetch(): typeof fetch {
    return this.#options.fetch
  }

  /** The URL of a request. */
  url(path: string, query: object = {}): string {
    const search = new URLSearchParams(textMembers(query)).toString()
    return `${this.#options.base}${path}${search === '' ? '' : `${path.includes('?') ? '&' : '?'}${search}`}`
  }

  /** Sends a request and reads its response as JSON, or as text if it is not JSON. */
  json<T>(request: Outgoing, options: RequestOptions = {}): Promise<Answered<T>> {
    return this.#tries(request, options, readBody) as Promise<Answered<T>>
  }

  /** Sends a request and returns its unread response. `timeout_ms` limits the wait for it; `signal` also aborts the body. */
  async open(request: Outgoing, options: RequestOptions = {}): Promise<Response> {
    const { response } = await this.#tries(request, options, () => Promise.resolve(undefined))
    return response
  }

  async #tries<T>(
    request: Outgoing,
    options: RequestOptions,
    read: (response: Response) => Promise<T>,
  ): Promise<Answered<T>> {
    // A stream can only be read once.
    const maxRetries = request.content instanceof ReadableStream ? 0 : (options.maxRetries ?? this.#options.maxRetries)
    // All attempts have the same key, so the service does the work once.
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
    // A body that is not JSON is the caller's error, not one of the connection.
    const body = bodyOf(request)
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
        ...body,
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
        throw new APITimeoutError(`No response to ${method} ${path} within ${timeout_ms} ms.`, { cause: error })
      if (error instanceof CadreError) throw error
      throw new APIConnectionError(`The connection for ${method} ${path} failed: ${reasonOf(error)}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }

  /** Logs a deprecation in the headers of a response once (RFC 9745, RFC 8594). */
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
      return new CadreError(`The service redirects to ${target}. Set baseURL to that address.`)
    }
    return apiError({ status, headers, body: await readBody(response), attempts })
  }
}

async function readBody(response: Response): Promise<unknown> {
  // 204 has no content.
  if (response.status === 204) return undefined
  const text = await response.text()
  if (!response.headers.get('content-type')?.startsWith('application/json')) return text
  try {
    return JSON.parse(text)
  } catch (cause) {
    // For an error the status is enough; a proxy may have replaced or cut the body.
    if (!response.ok) return text
    throw new APIConnectionError('The response is not valid JSON.', { cause })
  }
}

function bodyOf(request: Outgoing): RequestInit {
  const { body, content } = request
  // Browsers and Node require `duplex` for streams.
  if (content !== undefined) return { body: content, ...(content instanceof ReadableStream ? { duplex: 'half' } : {}) }
  return body === undefined ? {} : { body: bodyText(request, body) }
}

function bodyText({ isForm }: Outgoing, body: object): string {
  return isForm ? new URLSearchParams(textMembers(body)).toString() : JSON.stringify(body)
}

/** The members that are not null or undefined, as text. */
function textMembers(members: object): Record<string, string> {
  const given = Object.entries(members).filter(([, value]) => value !== undefined && value !== null)
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}

/** Seconds that the service may wait before it responds. */
function waitOf(query: object | undefined): number {
  return query && 'wait' in query && typeof query.wait === 'number' ? query.wait : 0
}

/** The reason of a connection error, which platforms put into the cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error && error.cause.message !== '' ? error.cause.message : error.message
}
