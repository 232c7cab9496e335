import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { eventExamples } from '../../contract/src/events/event-examples.ts'
import { deliveryBody, signatureHeaders } from '../../server/src/events/webhooks/delivery/sign.ts'
import { WebhookVerificationError } from './errors.ts'
import { verifyWebhook } from './webhooks.ts'

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Vyo2yZ0Tmg='
const body = deliveryBody({
  type: 'agent.failed',
  occurred_at: '2026-11-20T09:30:00.000Z',
  data: { ...eventExamples['agent.failed'], note: 'äöü €' },
})
const signed = (secrets = [secret], at = new Date()): Record<string, string> =>
  signatureHeaders(secrets, { id: 'evt_1', at, body })

test('a request that the service or the reference library has signed is verified', async () => {
  const event = await verifyWebhook(body, signed(), secret)
  assert.equal(event.event, 'agent.failed')
  // The name of an event determines the type of its data.
  if (event.event === 'agent.failed') assert.equal(event.data.agent.id, eventExamples['agent.failed'].agent.id)

  const at = new Date()
  const reference = {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('msg_1', at, body),
  }
  await verifyWebhook(Buffer.from(body), new Headers(reference), secret)
})

test('one valid signature of two is enough, and a secret that is not base64 is used as text', async () => {
  await verifyWebhook(body, signed(['another', secret]), secret)
  await verifyWebhook(body, signed(['plain text ü']), 'plain text ü')
  await verifyWebhook(body, signed(['whsec_abc']), 'whsec_abc')
})

test('a request that is changed, too old, in the future, of another secret or unsigned is refused', async () => {
  const hour = 3_600_000
  const refused: [string, Record<string, string>, string][] = [
    [`${body} `, signed(), secret],
    [body, signed(['another']), secret],
    [body, signed(), 'another'],
    [body, signed([secret], new Date(Date.now() - hour)), secret],
    [body, signed([secret], new Date(Date.now() + hour)), secret],
    [body, { ...signed(), 'webhook-id': 'evt_2' }, secret],
    [body, { ...signed(), 'webhook-timestamp': 'now' }, secret],
    [body, { ...signed(), 'webhook-signature': 'v1,' }, secret],
    [body, { ...signed(), 'webhook-signature': 'v1,%%%' }, secret],
    [body, {}, secret],
  ]
  for (const [text, headers, key] of refused)
    await assert.rejects(verifyWebhook(text, headers, key), WebhookVerificationError)
  await verifyWebhook(body, signed([secret], new Date(Date.now() - hour)), secret, { tolerance_seconds: 3700 })
})
