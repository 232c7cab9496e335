import { UpstreamError } from '../../platform/egress/connect.ts'
import { ModelError, type ModelErrorCode } from './model.ts'
import { parseJson } from '../../platform/parse-json.ts'

/** Characters of a provider's own words that a message repeats. */
const wordsMax = 500

/** Codes after which the same call may succeed later. */
const retryableCodes = new Set<ModelErrorCode>([
  'provider_rate_limited',
  'provider_unavailable',
  'provider_timeout',
  'provider_bad_answer',
])

/** Whether a failed call with this code is worth repeating, where nothing more is known. */
export function isRetryable(code: ModelErrorCode): boolean {
  return retryableCodes.has(code)
}

/** An answer that refuses a request, as the provider sent it. */
export class ProviderRefusal extends Error {
  readonly statusCode: number
  readonly responseHeaders: Record<string, string>
  readonly responseBody: string
  constructor(statusCode: number, responseHeaders: Record<string, string>, responseBody: string) {
    super('')
    this.name = 'ProviderRefusal'
    this.statusCode = statusCode
    this.responseHeaders = responseHeaders
    this.responseBody = responseBody
  }
}

/** Something in a provider's answer that its protocol does not have. */
export class NotTheProtocol extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'NotTheProtocol'
  }
}

/** What a provider said about a failure, in whatever form its library reports it. */
interface ProviderMessage {
  status: number | undefined
  message: string
  /** `code`, `type` and the like, joined: `insufficient_quota`, `overloaded_error`. */
  kind: string
  headers: Record<string, string>
}

/**
 * Turns whatever a provider's library throws, or puts into its stream, into a `ModelError`. `name` is the provider's,
 * for the message; the error carries the provider's words, but neither the request nor its headers.
 */
export function toModelError(error: unknown, name: string): ModelError {
  if (error instanceof ModelError) return error
  const said = readProviderMessage(error)
  if (said.status !== undefined && said.status >= 300) return byStatus(said, said.status, name)

  const links = chain(error)
  const isOne = (...names: string[]): boolean => links.some((link) => names.includes(link.name))
  if (isOne('AI_JSONParseError', 'AI_TypeValidationError', 'NotTheProtocol')) {
    return fail('provider_bad_answer', `${name} sent something that is not its protocol.`)
  }
  if (isOne('AI_UnsupportedFunctionalityError', 'AI_InvalidPromptError', 'AI_InvalidArgumentError')) {
    return fail('provider_refused_request', `${name} cannot be asked this: ${said.message}`)
  }
  if (isOne('AI_InvalidResponseDataError', 'AI_EmptyResponseBodyError')) return cutOff(name)
  const network = networkError(links, name)
  if (network) return network
  // A said without a status, in the middle of a stream.
  if (said.kind !== '') return byStatus(said, statusOfKind(said.kind) ?? 500, name)
  // The cause may be a bug in Cadre. A library's error would repeat the whole request.
  const cause = links.some((link) => link.name.startsWith('AI_')) ? undefined : error
  const message = `${name} failed in an unknown way: ${said.message}`
  return new ModelError('provider_bad_answer', message, { retryable: true, cause })
}

/** The answer ended before it said that it was finished. */
export function cutOff(name: string): ModelError {
  return fail('provider_unavailable', `The answer of ${name} was cut off before its end.`)
}

/** The status that a JSON body with an `error` in it stands for; undefined where it is no such body. */
export function statusOfErrorBody(text: string): number | undefined {
  const body = parseJson(text)
  if (!isRecord(body) || body['error'] === undefined || body['error'] === null) return undefined
  const { status, kind } = readProviderMessage(body['error'])
  return status ?? statusOfKind(kind) ?? 500
}

/** Seconds that the headers of an answer ask to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. */
function readRetryAfter(headers: Record<string, string>): number | undefined {
  const milliseconds = headers['retry-after-ms']
  if (milliseconds !== undefined && /^\d+(\.\d+)?$/.test(milliseconds)) return Number(milliseconds) / 1000
  const value = headers['retry-after']
  if (value === undefined) return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value)
  const until_ms = Date.parse(value)
  return Number.isNaN(until_ms) ? undefined : Math.max(0, (until_ms - Date.now()) / 1000)
}

function byStatus({ message, kind, headers }: ProviderMessage, given: number, name: string): ModelError {
  // In the middle of a stream there is no status, and a library that makes one up says 400 for all that it does not know.
  const status = given === 400 ? (statusOfKind(kind) ?? given) : given
  const said = `${name} answered ${status}${message === '' ? '.' : `: ${message}`}`
  const retry_after = readRetryAfter(headers)
  if (status === 401 || status === 403) return fail('provider_credentials_refused', said)
  if (status === 404 || kind.includes('model_not_found')) return fail('model_not_found', said)
  if (isTooLong(status, kind, message)) return fail('context_length_exceeded', said)
  if (status === 408 || status === 504) return fail('provider_timeout', said, { retry_after })
  // A spent quota is answered 429 too, and does not come back by waiting.
  if (status === 429) {
    return fail('provider_rate_limited', said, { retry_after, retryable: !kind.includes('insufficient_quota') })
  }
  if (status >= 500) return fail('provider_unavailable', said, { retry_after })
  if (status < 400) {
    return fail('provider_bad_answer', `${name} redirects to another address; its base URL must be the final one.`, {
      retryable: false,
    })
  }
  return fail('provider_refused_request', `${said}${otherProtocol(message, name)}`)
}

/** What to set where a server says that it takes this request by the Responses protocol alone. */
function otherProtocol(message: string, name: string): string {
  if (!message.includes('/v1/responses')) return ''
  const setting = name === 'openai' ? 'OPENAI_PROTOCOL' : `CADRE_PROVIDER_${name.toUpperCase()}_PROTOCOL`
  return ` Cadre speaks it with ${setting}=responses.`
}

/** Words by which providers and servers refuse a conversation that does not fit the context window. */
const tooLong =
  /context[_ ](length|window|size)|maximum context|prompt is too long|too many (input )?tokens|input (is|length).{0,40}(too long|exceed)|exceeds? (the )?(available )?context|reduce the length/i

function isTooLong(status: number, kind: string, message: string): boolean {
  if (kind.includes('context_length_exceeded')) return true
  return (status === 400 || status === 413 || status === 422) && tooLong.test(message)
}

function fail(
  code: ModelErrorCode,
  message: string,
  options: { retry_after?: number | undefined; retryable?: boolean } = {},
): ModelError {
  return new ModelError(code, message, {
    retryable: options.retryable ?? isRetryable(code),
    retry_after: options.retry_after,
  })
}

function readProviderMessage(error: unknown): ProviderMessage {
  const outer = isRecord(error) ? error : {}
  // The libraries keep the body as text, also where it does not have the form that they know.
  const body = typeof outer['responseBody'] === 'string' ? parseJson(outer['responseBody']) : undefined
  const inner = isRecord(body) ? body['error'] : isRecord(outer['error']) ? outer['error'] : outer
  const facts = isRecord(inner) ? inner : outer
  const messages = [facts['message'], inner, outer['message'], error].filter((text) => typeof text === 'string')
  const codes = [facts['code'], facts['type'], facts['status']]
  return {
    status: [outer['statusCode'], ...codes].map(Number).find((status) => status >= 100 && status <= 599),
    message: (messages.find((text) => text !== '') ?? '').slice(0, wordsMax),
    kind: codes.filter(isWord).join(' ').toLowerCase(),
    headers: isRecord(outer['responseHeaders']) ? (outer['responseHeaders'] as Record<string, string>) : {},
  }
}

/** Kinds of complaints of OpenAI, Anthropic and the servers that follow them, and the statuses they are sent with. */
const kinds: [RegExp, number][] = [
  [/rate_?limit|quota|too_many/, 429],
  [/authentication|api_key|unauthorized/, 401],
  [/permission|forbidden/, 403],
  [/not_?found/, 404],
  [/overloaded|unavailable/, 503],
  [/timeout/, 504],
  [/too_large/, 413],
  [/invalid|bad_?request|context_length/, 400],
]

function statusOfKind(kind: string): number | undefined {
  return kinds.find(([pattern]) => pattern.test(kind))?.[1]
}

/** The failure of the connection, where that is what went wrong. */
function networkError(links: readonly Error[], name: string): ModelError | undefined {
  for (const link of links) {
    if (link instanceof UpstreamError) {
      const code = link.code === 'connect_timed_out' ? 'provider_timeout' : 'provider_unavailable'
      return fail(code, `${name} cannot be reached: ${link.message}.`)
    }
    const code = 'code' in link && typeof link.code === 'string' ? link.code : link.name
    if (/^(UND_ERR|E[A-Z]+$|HPE_|HTTPParserError$)/.test(code)) {
      return fail('provider_unavailable', `The connection to ${name} was lost (${code}).`)
    }
  }
  return undefined
}

/** An error and its causes, from the outside in. */
function chain(error: unknown): Error[] {
  const links: Error[] = []
  for (let link = error; link instanceof Error && !links.includes(link); link = link.cause) links.push(link)
  return links
}

function isWord(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}

/** Whether it may have members: an object, or an array. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
