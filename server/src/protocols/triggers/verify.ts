import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { Webhook, WebhookVerificationError } from 'standardwebhooks'
import {
  sourceDefinitions,
  triggerBounds,
  type HmacTemplate,
  type TriggerSource,
} from '#contract/doors/trigger-sources.ts'

/** The signature settings of a trigger whose source does not define them. */
export interface HmacSettings {
  header: string
  algorithm?: HmacTemplate['algorithm'] | undefined
  encoding?: HmacTemplate['encoding'] | undefined
  prefix?: string | undefined
  timestamp_header?: string | undefined
}

/** A request to the address of a trigger, with lowercase header names and the raw body. */
export interface Received {
  headers: Readonly<Record<string, string>>
  body: Buffer
}

/** How a trigger authenticates requests. */
export interface Expected {
  source: TriggerSource
  hmac: HmacSettings | null
  /** The current secret, and the previous one while it is valid. */
  secrets: readonly string[]
}

/** Why a request is not authentic, as a message for its sender; undefined if it is. */
export type Refusal = string | undefined

/**
 * Checks that the sender knows a secret of the trigger. Uses only the raw bytes, before anything is parsed, and
 * compares signatures and tokens in constant time.
 */
export function verify(expected: Expected, received: Received, now_ms: number): Refusal {
  const { source, hmac } = expected
  const { proof, template, token } = sourceDefinitions[source]
  if (proof === 'standard_webhooks') return verifyStandard(expected, received)
  if (template) return verifyHmac(template, expected, received, now_ms)
  if (hmac && (source === 'hmac' || source === 'email')) return verifyHmac(templateOf(hmac), expected, received, now_ms)
  return verifyToken(token ?? sourceDefinitions.bearer.token!, expected, received)
}

function templateOf(hmac: HmacSettings): HmacTemplate {
  const { header, algorithm = 'sha256', encoding = 'hex', prefix = '', timestamp_header } = hmac
  const timestamp = timestamp_header === undefined ? null : { header: timestamp_header.toLowerCase() }
  const lead = timestamp ? '{timestamp}.' : ''
  return { header: header.toLowerCase(), algorithm, encoding, prefix, timestamp, lead }
}

/** Standard Webhooks 1.0: id, timestamp and signature in three headers. */
function verifyStandard({ secrets }: Expected, { headers, body }: Received): Refusal {
  let fault = 'The delivery is not signed.'
  for (const secret of secrets)
    try {
      new Webhook(secret).verify(body, { ...headers }, { jsonParse: false })
      return undefined
    } catch (error) {
      if (!(error instanceof WebhookVerificationError)) throw error
      fault = `The delivery is not authentic: ${error.message}.`
    }
  return fault
}

function verifyToken(
  { header, prefix }: { header: string; prefix: string },
  { secrets }: Expected,
  { headers }: Received,
): Refusal {
  const given = headers[header]
  if (given === undefined) return `The delivery has no header ${header}.`
  const hasPrefix = given.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase()
  const token = hasPrefix ? given.slice(prefix.length).trim() : ''
  // Digests have equal length, so the comparison does not reveal the length of the secret.
  const isKnown = secrets.map((secret) => timingSafeEqual(digestOf(secret), digestOf(token))).includes(true)
  return isKnown ? undefined : `The token in ${header} is not the secret of the trigger.`
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function verifyHmac(
  { header, algorithm, encoding, prefix, timestamp, lead }: HmacTemplate,
  { secrets }: Expected,
  { headers, body }: Received,
  now_ms: number,
): Refusal {
  const value = headers[header]
  if (value === undefined) return `The delivery is not signed: it has no header ${header}.`
  // In a list such as `t=1492774577,v1=…,v1=…`, any of the signatures may match.
  const parts = timestamp === 'in signature' ? value.split(',').map((part) => part.trim()) : [value.trim()]
  const signatures = parts.filter((part) => part.startsWith(prefix)).map((part) => part.slice(prefix.length))
  let time = ''
  if (timestamp !== null) {
    const sent =
      timestamp === 'in signature'
        ? parts.find((part) => part.startsWith('t='))?.slice(2)
        : headers[timestamp.header]?.trim()
    if (sent === undefined) return 'The delivery has no timestamp.'
    if (!isNear(sent, now_ms))
      return `The delivery was signed more than ${triggerBounds.tolerance_seconds} seconds before or after now.`
    time = sent
  }
  const expected = secrets.map((secret) =>
    createHmac(algorithm, secret).update(lead.replace('{timestamp}', time)).update(body).digest(),
  )
  const isGenuine = signatures
    .map((signature) => bytesOf(signature, encoding))
    .flatMap((given) => expected.map((one) => given.length === one.length && timingSafeEqual(given, one)))
    .includes(true)
  return isGenuine ? undefined : `The signature in ${header} does not match the body and the secret of the trigger.`
}

/** The bytes of a signature; empty if its encoding is invalid. */
function bytesOf(text: string, encoding: HmacTemplate['encoding']): Buffer {
  const isWritten = encoding === 'hex' ? /^(?:[0-9a-f]{2})+$/i : /^[A-Za-z0-9+/_-]+={0,2}$/
  return isWritten.test(text) ? Buffer.from(text, encoding) : Buffer.alloc(0)
}

/** A larger Unix time is in milliseconds: as seconds, this is about the year 5000. */
const secondsMax = 1e11

/** Whether a Unix time in seconds or milliseconds is within the tolerance of now. */
export function isNear(time: unknown, now_ms: number): boolean {
  const text = String(time)
  if (!/^\d{1,15}$/.test(text)) return false
  const number = Number(text)
  const sent_ms = number > secondsMax ? number : number * 1000
  return Math.abs(now_ms - sent_ms) <= triggerBounds.tolerance_seconds * 1000
}
