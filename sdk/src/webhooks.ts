import type { EventData, OutboxEventName } from './contract.ts'
import { WebhookVerificationError } from './errors.ts'

/** The body of a webhook request; the type of `data` depends on `event`. */
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
  /** Maximum difference between the request's timestamp and now. */
  tolerance_seconds?: number
}

/**
 * Verifies a webhook request (Standard Webhooks 1.0) and returns its event. `body` must be the received text or bytes: JSON
 * that was parsed and written again may differ. An event may arrive more than once, each time with the same `webhook-id`.
 * @throws WebhookVerificationError if it was not signed with `secret` within `tolerance_seconds`
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
  if (!/^\d+$/.test(timestamp)) throw new WebhookVerificationError('webhook-timestamp must be a number of seconds.')
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= tolerance_seconds))
    throw new WebhookVerificationError(
      'The timestamp of the request is too old or in the future. Check the clock of this machine.',
    )

  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const signed = joined(new TextEncoder().encode(`${id}.${timestamp}.`), bytes)
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', signingKey(secret), algorithm, false, ['verify'])
  const given = signatures.split(' ').flatMap((signature) => bytesOf(signature.replace(/^v1,/, '')) ?? [])
  // The platform compares in constant time.
  const matches = await Promise.all(given.map((one) => crypto.subtle.verify('HMAC', key, one, signed)))
  if (!matches.includes(true)) throw new WebhookVerificationError('No signature matches the secret.')
  return JSON.parse(new TextDecoder().decode(bytes)) as WebhookEvent
}

/** The signing key: the decoded bytes of `whsec_` and base64, or the bytes of any other text (decision D96). */
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

/** Decodes base64; undefined if it is invalid. */
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
