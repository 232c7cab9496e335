import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { Problem } from '#contract/core/problems.ts'
import { triggerSources } from '#contract/doors/trigger-sources.ts'
import { renderInput, renderThreadKey } from './render.ts'
import { readBody } from './read-body.ts'
import { verify } from './verify.ts'

const types = ['application/json', 'application/x-www-form-urlencoded', 'text/plain', 'message/rfc822', '', ';;', '\0']
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((array) => Buffer.from(array)),
  fc.json().map((text) => Buffer.from(text)),
  fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
)

it('any bytes of a body are parsed or refused with 4xx, and the result can be stored', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...triggerSources),
      fc.constantFrom(...types),
      bytes,
      async (source, type, body) => {
        const headers = { 'content-type': type }
        let parsed: unknown
        try {
          parsed = await readBody(source, { headers, body })
        } catch (error) {
          assert.ok(error instanceof Problem && error.status === 400, String(error))
          return
        }
        const view = {
          ...{ body: parsed, headers, delivery: { id: 'tdlv_1', received_at: '' } },
          trigger: { id: 'trig_1', name: 'x', source },
        }
        const made = [
          renderInput(null, view, 'abcd1234'),
          renderInput({ all: '{{body}}', one: 'x {{body.0}}' }, view, 'abcd1234'),
          renderThreadKey('{{body}}{{headers.content-type}}', view),
        ]
        const text = JSON.stringify(made)
        assert.equal(/\\u0000|\\ud[89a-f]/i.test(text.replaceAll('\\\\', '')), false, text)
      },
    ),
    { numRuns: 500 },
  )
})

it('any headers give a verification result and never an exception', () => {
  const names = [
    ...['x-hub-signature-256', 'x-gitlab-token', 'x-slack-signature', 'x-slack-request-timestamp', 'stripe-signature'],
    ...['linear-signature', 'webhook-id', 'webhook-timestamp', 'webhook-signature', 'authorization', 'x-signature'],
  ]
  const now = Math.floor(Date.now() / 1000)
  const value = fc.oneof(
    fc.string(),
    fc.constantFrom(
      'v1,',
      'v1',
      ',',
      'v0=',
      'sha256=',
      't=,v1=',
      `t=${now},v1=00`,
      'Bearer ',
      String(now),
      `v1,${'A'.repeat(43)}=`,
    ),
  )
  fc.assert(
    fc.property(
      fc.constantFrom(...triggerSources),
      fc.dictionary(fc.constantFrom(...names), value),
      bytes,
      (source, headers, body) => {
        const hmac = source === 'hmac' ? { header: 'x-signature' } : null
        const secrets = ['whsec_c2VjcmV0LW9mLXRoZS10cmlnZ2VyLXNlbmRlcg==']
        assert.equal(typeof verify({ source, hmac, secrets }, { headers, body }, Date.now()), 'string')
      },
    ),
    { numRuns: 2000 },
  )
})
