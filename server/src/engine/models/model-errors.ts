import { UpstreamError } from '../../platform/egress/connect.ts'
import { ModelError, type ModelErrorCode } from './model.ts'
import { parseJson } from '../../platform/parse-json.ts'

/** Maximum characters of a provider's message that an error repeats. */
const wordsMax = 500

/** Codes after which the same call may succeed later. */
const retryableCodes = new Set<ModelErrorCode>([
  'provider_rate_limited',
  'provider_unavailable',
  'provider_timeout',
  'provider_bad_answer',
])

/** Whether a failed call with this code is worth a retry, if nothing more is known. */
export function isRetryable(code: ModelErrorCode): boolean {
  return retryableCodes.has(code)
}

/** A provider's error response. */
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

/** A response that violates the provider's protocol. */
export class ProtocolViolation extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'ProtocolViolation'
  }
}

/** A provider's error message, independent of the library that reports it. */
interface ProviderMessage {
  status: number | undefined
  message: string
  /** `code`, `type` and the like, joined: `insufficient_quota`, `overloaded_error`. */
  kind: string
  headers: Record<string, string>
}

/**
 * Converts an error of a provider's library, or an error within a stream, into a `ModelError`. `name` is the
 * provider's, for the message. The error has the provider's message, but neither the request nor its headers.
 */
export function toModelError(error: unknown, name: string): ModelError {
  const links = chain(error)
  // A library may wrap an error of the response's body in its own.
  const own = links.find((link) => link instanceof ModelError)
  if (own) return own
  const said = readProviderMessage(error)
  if (said.status !== undefined && said.status >= 300) return byStatus(said, said.status, name)

  const isOne = (...names: string[]): boolean => links.some((link) => names.includes(link.name))
  if (isOne('AI_JSONParseError', 'AI_TypeValidationError', 'ProtocolViolation')) {
    return fail('provider_bad_answer', `The response of ${name} violates its protocol.`)
  }
  if (isOne('AI_UnsupportedFunctionalityError', 'AI_InvalidPromptError', 'AI_InvalidArgumentError')) {
    return fail('provider_refused_request', `${name} does not support the request: ${said.message}`)
  }
  if (isOne('AI_InvalidResponseDataError', 'AI_EmptyResponseBodyError')) return cutOff(name)
  const network = networkError(links, name)
  if (network) return network
  // An error without a status, in the middle of a stream.
  if (said.kind !== '') return byStatus(said, statusOfKind(said.kind) ?? 500, name)
  // The cause may be a bug in Cadre. A library's error would repeat the whole request.
  const cause = links.some((link) => link.name.startsWith('AI_')) ? undefined : error
  const message = `${name} failed with an unknown error: ${said.message}`
  return new ModelError('provider_bad_answer', message, { retryable: true, cause })
}

/** The answer ended without its end marker. */
export function cutOff(name: string): ModelError {
  return fail('provider_unavailable', `The answer of ${name} was cut off before its end.`)
}

/** The status that corresponds to a JSON body with an `error`; undefined for any other body. */
export function statusOfErrorBody(text: string): number | undefined {
  const body = parseJson(text)
  if (!isRecord(body) || body['error'] === undefined || body['error'] === null) return undefined
  const { status, kind } = readProviderMessage(body['error'])
  return status ?? statusOfKind(kind) ?? 500
}

/** Seconds to wait, from the headers of a response: `retry-after-ms`, or `retry-after` in seconds or as a date. */
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
  // A stream has no status after its start, and one library reports 400 for every error that it does not know.
  const status = given === 400 ? (statusOfKind(kind) ?? given) : given
  const said = `${name} answered ${status}${message === '' ? '.' : `: ${message}`}`
  const retry_after = readRetryAfter(headers)
  if (status === 401 || status === 403) return fail('provider_credentials_refused', said)
  if (status === 404 || kind.includes('model_not_found')) return fail('model_not_found', said)
  if (isTooLong(status, kind, message)) return fail('context_length_exceeded', said)
  if (status === 408 || status === 504) return fail('provider_timeout', said, { retry_after })
  // A spent quota is also answered with 429, but waiting does not help.
  if (status === 429) {
    return fail('provider_rate_limited', said, { retry_after, retryable: !kind.includes('insufficient_quota') })
  }
  if (status >= 500) return fail('provider_unavailable', said, { retry_after })
  if (status < 400) {
    return fail('provider_bad_answer', `${name} redirects to another address. Set its base URL to the final one.`, {
      retryable: false,
    })
  }
  return fail('provider_refused_request', `${said}${otherProtocol(message, name)}`)
}

/** The setting that helps if a server accepts this request only by the Responses protocol. */
function otherProtocol(message: string, name: string): string {
  if (!message.includes('/v1/responses')) return ''
  const setting = name === 'openai' ? 'OPENAI_PROTOCOL' : `CADRE_PROVIDER_${name.toUpperCase()}_PROTOCOL`
  return ` Set ${setting}=responses.`
}

/** Messages with which providers refuse a conversation that does not fit the context window. */
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
  // The libraries keep the body as text, even if they do not know its form.
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

/** Kinds of errors of OpenAI, Anthropic and compatible servers, and their statuses. */
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

/** The error of the connection, if it caused the failure. */
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

/** An error and its causes, outermost first. */
function chain(error: unknown): Error[] {
  const links: Error[] = []
  for (let link = error; link instanceof Error && !links.includes(link); link = link.cause) links.push(link)
  return links
}

function isWord(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}

/** Whether the value can have members: an object or an array. */
function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
