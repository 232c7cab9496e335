import type { EventData, OutboxEventName } from './contract.ts'
import { WebhookVerificationError } from './errors.ts'

/** What a webhook is sent: an event with its own `data`. */
export type WebhookEvent = {
  [Name in OutboxEventName]: {
    event: Name
    /** When it happened: ISO 8601. */
    timestamp: string
    data: EventData<Name>
  }
}[OutboxEventName]

type HeaderSource = Headers | Record<string, string | string[] | undefined>

export interface VerifyOptions {
  /** How far the moment of the request may be from now. */
  tolerance_seconds?: number
}

/**
 * Reads a request to a webhook, and rejects with `WebhookVerificationError` unless it was signed with `secret` within the
 * last minutes (Standard Webhooks 1.0). `body` is the text or the bytes as they came: parsed and written again they are
 * others. The same event may come more than once; its `webhook-id` is the same each time.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeaderSource,
  secret: string,
  { tolerance_seconds = 300 }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const id = header(headers, 'webhook-id')
  const timestamp = header(headers, 'webhook-timestamp')
  const signatures = header(headers, 'webhook-signature')
  if (!/^\d+$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp is no moment.')
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= tolerance_seconds))
    throw new WebhookVerificationError('The request is too old, or of a time to come.')

  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', signingKey(secret), algorithm, false, ['verify'])
  const given = signatures.split(' ').flatMap((signature) => bytesOf(signature.replace(/^v1,/, '')) ?? [])
  // The platform compares in constant time.
  const matches = await Promise.all(given.map((one) => crypto.subtle.verify('HMAC', key, one, signed)))
  if (!matches.includes(true)) throw new WebhookVerificationError('No signature is by this secret.')
  return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent
}

/** Of `whsec_` and base64 those bytes, of anything else its own (decision D96). */
function signingKey(secret: string): Uint8Array<ArrayBuffer> {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  const decoded = encoded !== undefined && encoded.length % 4 === 0 ? bytesOf(encoded) : undefined
  return decoded ?? new TextEncoder().encode(secret)
}

function header(headers: HeaderSource, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name]
  if (typeof value !== 'string' || value === '') throw new WebhookVerificationError(`${name} is missing.`)
  return value
}

/** Undefined where it is no base64. */
function bytesOf(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0))
  } catch {
    return undefined
  }
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(first.length + second.length)
  both.set(first)
  both.set(second, first.length)
  return both
}
