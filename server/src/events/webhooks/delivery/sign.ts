import { createHmac } from 'node:crypto'

/** An event as stored in the outbox. */
export interface StoredEvent {
  type: string
  /** ISO 8601 in UTC, with milliseconds. */
  occurred_at: string
  data: Record<string, unknown>
}

/** The type of events for push notifications of A2A: their data is the body. */
export const pushType = 'a2a.push'

/** The body of a delivery: the same bytes in every attempt (decision D93). */
export function deliveryBody({ type, occurred_at, data }: StoredEvent): string {
  if (type === pushType) return JSON.stringify(data)
  return JSON.stringify({ event: type, timestamp: occurred_at, data })
}

/**
 * The signing key of a secret (decision D96): the decoded bytes of `whsec_` and base64; the bytes of any other secret.
 */
export function signingKey(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  // Receivers' libraries accept base64 only with its padding.
  const isBase64 = encoded !== undefined && encoded.length % 4 === 0
  return isBase64 ? Buffer.from(encoded, 'base64') : Buffer.from(secret)
}

/**
 * Headers that prove the origin of a request, by Standard Webhooks 1.0. `id` is the event's, the same in every attempt;
 * `at` is the time of this one. While a secret is being replaced, both sign, the current one first.
 */
export function signatureHeaders(
  secrets: readonly string[],
  { id, at, body }: { id: string; at: Date; body: string },
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const timestamp = String(Math.floor(at.getTime() / 1000))
  const sign = (secret: string): string =>
    `v1,${createHmac('sha256', signingKey(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': secrets.map(sign).join(' ') }
}
