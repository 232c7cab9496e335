import { EgressError, EgressRefused, type Egress } from '../../../platform/egress/safe-fetch.ts'
import type { Secrets } from '../../../platform/crypto/secrets.ts'
import { retryAfter_ms } from './delivery-schedule.ts'
import type { AttemptResult, DueDelivery } from './delivery-store.ts'
import { deliveryBody, signatureHeaders } from './sign.ts'
import { secretLabels } from '../../../platform/crypto/secret-labels.ts'

/** Maximum bytes of a response that are stored (decision D97). */
export const answerStored_bytes = 1024
/** Maximum characters of a stored header; more does not help to inspect an attempt. */
const headerStored = 1024
/** Maximum characters of an error, which may quote a receiver's certificate, and is sent to other webhooks too. */
const errorStored = 500
/** Names of response headers whose values may be credentials. */
const secretHeaders =
  /^(set-cookie2?|cookie|(proxy-)?authorization|authentication-info)$|token|secret|api-?key|session|csrf/
const redacted = '[redacted]'
/** Stored characters of a signature: enough to compare, useless as a proof. */
const signatureStored = 8

/** What sending a delivery needs. */
export interface WebhookSender {
  egress: Pick<Egress, 'fetch'>
  secrets: Pick<Secrets, 'decrypt'>
  /** The version of the service, which is sent to receivers. */
  version: string
}

/**
 * Makes one attempt to deliver (decisions D93, D96, D97). Whatever the receiver does, it ends soon after 15 s and needs
 * at most 64 KiB of memory. Throws only the reason of the signal; the outcome is unknown then.
 */
export async function sendWebhook(
  { egress, secrets, version }: WebhookSender,
  delivery: DueDelivery,
  { at, signal }: { at: Date; signal: AbortSignal },
): Promise<AttemptResult> {
  const started_ms = performance.now()
  const attempt = {
    delivery_id: delivery.id,
    webhook_id: delivery.webhook_id,
    attempts: delivery.attempts,
    at,
    request_url: delivery.url,
    request_headers: {},
    status: null,
    response_headers: null,
    body: null,
    error: null,
    retry_after_ms: undefined,
  }
  const ended = (rest: Partial<AttemptResult>): AttemptResult => ({
    ...attempt,
    duration_ms: Math.round(performance.now() - started_ms),
    ...rest,
  })
  if (!delivery.event) return ended({ error: 'The event is no longer stored.' })
  let keys: string[]
  let own: Record<string, string> = {}
  try {
    if (delivery.headers)
      own = JSON.parse(secrets.decrypt(secretLabels.push_headers, delivery.headers, delivery.webhook_id)) as Record<
        string,
        string
      >
    keys = delivery.secrets.map((secret) => secrets.decrypt(secretLabels.webhook, secret, delivery.webhook_id))
  } catch {
    return ended({
      error:
        'The secret of the webhook cannot be decrypted: it was encrypted with another CADRE_SECRET_KEY. Rotate the secret.',
    })
  }
  const body = deliveryBody(delivery.event)
  const signed = signatureHeaders(keys, { id: delivery.event_id, at, body })
  const headers = { 'content-type': 'application/json', 'user-agent': `cadre-webhooks/${version}`, ...own, ...signed }
  const hidden = Object.fromEntries(Object.keys(own).map((name) => [name, redacted]))
  const request_headers = { ...headers, ...hidden, 'webhook-signature': shortened(signed['webhook-signature']) }
  try {
    const answer = await egress.fetch(delivery.url, { purpose: 'webhook', method: 'POST', headers, body, signal })
    return ended({
      request_headers,
      status: answer.status,
      response_headers: storedHeaders(answer.headers),
      body: answer.body.subarray(0, answerStored_bytes),
      error: errorOf(answer.status),
      retry_after_ms: retryAfter_ms(answer.headers['retry-after'], at),
    })
  } catch (error) {
    signal.throwIfAborted()
    return ended({ request_headers, error: inWords(error) })
  }
}

/** The error for a status; null for a 2xx. */
function errorOf(status: number): string | null {
  if (status >= 200 && status < 300) return null
  return status >= 300 && status < 400
    ? `The receiver answered ${status}; redirects are not followed.`
    : `The receiver answered ${status}.`
}

/** Why there was no response, for the managers of the webhook, without facts for the operator only. */
function inWords(error: unknown): string {
  if (error instanceof EgressRefused) return `The address is not allowed: ${error.message}.`
  if (!(error instanceof EgressError)) return 'The request could not be sent.'
  if (error.code === 'timed_out') return 'There was no complete answer within 15 s.'
  if (error.code === 'connect_timed_out') return 'There was no connection within 5 s.'
  // OpenSSL writes the location in its code and a thread number around its message.
  const text = error.message
    // Cut first, because the rest may be as long as a certificate.
    .slice(0, 2 * errorStored)
    .replace(/(?<!\S)\S*error:[0-9A-F]+:[^:]*:[^:]*:([^:]*)[^]*/, '$1')
    .replaceAll(/\p{Cc}+/gu, ' ')
  const whole = `${text.charAt(0).toUpperCase()}${text.slice(1).trim()}`
  return whole.length > errorStored ? `${whole.slice(0, errorStored).toWellFormed()}…` : `${whole}.`
}

function shortened(signatures: string): string {
  return signatures.replaceAll(/v1,[^ ]+/g, (one) => `${one.slice(0, 'v1,'.length + signatureStored)}…`)
}

function storedHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      secretHeaders.test(name) ? redacted : value.slice(0, headerStored),
    ]),
  )
}
