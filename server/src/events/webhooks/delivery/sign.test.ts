import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { deliveryBody, signatureHeaders, signingKey } from './sign.ts'

const id = 'evt_01jcm3x5v8f9a2b4c6d8e0g2h4'
const body = deliveryBody({
  type: 'project.created',
  occurred_at: '2026-11-20T09:30:00.000Z',
  data: { project: { id: 42, name: 'Bücher 😀' } },
})

describe('the signature of a delivery (decision D96)', () => {
  it('the signature of a delivery is the one of the standard, example by example', () => {
    // From the specification of Standard Webhooks 1.0.
    const at = new Date(1_649_367_553_000)
    const signed = signatureHeaders(['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'], {
      id: 'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk',
      at,
      body: '{"email":"test@example.com","username":"test_user"}',
    })
    assert.deepEqual(signed, {
      'webhook-id': 'msg_27UH4WbU6Z5A5EzD8u03UvzRbpk',
      'webhook-timestamp': '1649367553',
      'webhook-signature': 'v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=',
    })
  })

  it('the signature of a delivery is verified by the reference library, whatever the form of the secret', () => {
    const at = new Date()
    for (const secret of [
      'whsec_c2VjcmV0LW9mLXRoZS13ZWJob29r',
      'plain',
      'whsec_',
      'whsec_no base64',
      'geheim 🔑',
      'whsec_abc',
    ]) {
      const headers = signatureHeaders([secret], { id, at, body })
      const isEncoded = secret === 'whsec_c2VjcmV0LW9mLXRoZS13ZWJob29r'
      const reference = isEncoded ? new Webhook(secret) : new Webhook(Buffer.from(secret), { format: 'raw' })
      assert.deepEqual(reference.verify(body, headers), JSON.parse(body), secret)
      assert.throws(() => reference.verify(`${body} `, headers), /No matching signature/)
      assert.throws(() => reference.verify(body, { ...headers, 'webhook-id': `${id}x` }), /No matching signature/)
      assert.throws(() => new Webhook(Buffer.from('another'), { format: 'raw' }).verify(body, headers))
    }
  })

  it('the signature of a delivery is made with the bytes that base64 stands for, or with those of the text', () => {
    assert.deepEqual(signingKey('whsec_c2VjcmV0'), Buffer.from('secret'))
    assert.deepEqual(signingKey('c2VjcmV0'), Buffer.from('c2VjcmV0'))
    // Without its padding no library takes it for base64.
    assert.deepEqual(signingKey('whsec_c2VjcmV0cw'), Buffer.from('whsec_c2VjcmV0cw'))
    assert.deepEqual(signingKey('whsec_c2VjcmV0cw=='), Buffer.from('secrets'))
  })

  it('the signature of a delivery is made by every secret that is given, the current one first', () => {
    const at = new Date()
    const headers = signatureHeaders(['new', 'old'], { id, at, body })
    const by = (secret: string) =>
      `v1,${createHmac('sha256', secret).update(`${id}.${headers['webhook-timestamp']}.${body}`).digest('base64')}`
    assert.equal(headers['webhook-signature'], `${by('new')} ${by('old')}`)
    for (const secret of ['new', 'old'])
      assert.doesNotThrow(() => new Webhook(Buffer.from(secret), { format: 'raw' }).verify(body, headers))
  })

  it('the signature of a delivery covers a body of exactly three members', () => {
    assert.equal(
      body,
      '{"event":"project.created","timestamp":"2026-11-20T09:30:00.000Z","data":{"project":{"id":42,"name":"Bücher 😀"}}}',
    )
  })
})
