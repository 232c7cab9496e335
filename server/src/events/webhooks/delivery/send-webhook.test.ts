import assert from 'node:assert/strict'
import { it } from 'node:test'
import { EgressError } from '../../../platform/egress/safe-fetch.ts'
import { sendWebhook } from './send-webhook.ts'

const delivery = {
  id: 'dlv_1',
  webhook_id: 'wh_1',
  event_id: 'evt_1',
  attempts: 0,
  url: 'https://hooks.example.com/',
  secrets: [Buffer.from('secret')],
  headers: null,
  event: { type: 'project.created', occurred_at: '2026-11-20T09:30:00.000Z', data: {} },
}

/** What is said of an attempt that the way out fails with these words. */
async function errorOf(message: string): Promise<string | null> {
  const network = { bytes_in: 0, bytes_out: 0 }
  const sender = {
    egress: { fetch: () => Promise.reject(new EgressError('tls_failed', message, { network })) },
    secrets: { decrypt: () => 'secret' },
    version: '1.0.0',
  }
  const options = { at: new Date(), signal: new AbortController().signal }
  return (await sendWebhook(sender, delivery, options)).error
}

it('a receiver cannot have more than a few words kept of why it was not reached', async () => {
  const names = 'DNS:a.example.com, '.repeat(5000)
  const error = await errorOf(`no secure connection: the name is not in the certificate: ${names}`)
  assert.match(error!, /^No secure connection: the name is not in the certificate: DNS:a\.example\.com, /)
  assert.equal(error!.length, 501)
  assert.equal(await errorOf('no secure connection: it expired'), 'No secure connection: it expired.')
})

it('the stored part of a response is text that the database accepts, wherever it is cut', async () => {
  for (const before of ['x'.repeat(499), 'x'.repeat(500)]) {
    const error = await errorOf(`${before}😀\u0000${'y'.repeat(20)}`)
    assert.ok(error!.isWellFormed() && !error!.includes('\u0000'))
  }
})
