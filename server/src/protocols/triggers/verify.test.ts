import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, it } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { TriggerSource } from '#contract/doors/trigger-sources.ts'
import { verify, type HmacSettings } from './verify.ts'

const secret = 'whsec_c2VjcmV0LW9mLXRoZS10cmlnZ2VyLXNlbmRlcg=='
const other = 'whsec_YW5vdGhlci1zZWNyZXQtb2YtYS1zdHJhbmdlcg=='
const body: Buffer = Buffer.from('{"text":"ä😀","n":1.0}')
const now = Date.UTC(2026, 10, 20, 9, 30)
const seconds = Math.floor(now / 1000)
const mac = (key: string, text: string | Buffer, algorithm = 'sha256') => createHmac(algorithm, key).update(text)
const over = (lead: string, of = body) => Buffer.concat([Buffer.from(lead), of])

/** Signs like each source, according to its documentation: with a secret, at a time in seconds. */
const sign: Record<string, (key: string, at: number, of?: Buffer) => Record<string, string>> = {
  github: (key, _at, of = body) => ({ 'x-hub-signature-256': `sha256=${mac(key, of).digest('hex')}` }),
  slack: (key, at, of = body) => ({
    'x-slack-request-timestamp': String(at),
    'x-slack-signature': `v0=${mac(key, over(`v0:${at}:`, of)).digest('hex')}`,
  }),
  stripe: (key, at, of = body) => ({
    'stripe-signature': `t=${at},v0=${'0'.repeat(64)},v1=${mac(key, over(`${at}.`, of)).digest('hex')}`,
  }),
  linear: (key, _at, of = body) => ({ 'linear-signature': mac(key, of).digest('hex') }),
  gitlab: (key) => ({ 'x-gitlab-token': key }),
  bearer: (key) => ({ authorization: `Bearer ${key}` }),
}
const isStamped = new Set(['slack', 'stripe'])
const isToken = new Set(['gitlab', 'bearer'])

const ask = (
  source: string,
  headers: Record<string, string>,
  more: { secrets?: string[]; of?: Buffer; hmac?: HmacSettings | null; at?: number } = {},
) => {
  const { secrets = [secret], of = body, hmac = null, at = now } = more
  return verify({ source: source as TriggerSource, hmac, secrets }, { headers, body: of }, at)
}

for (const [source, signed] of Object.entries(sign))
  describe(`a delivery of ${source}`, () => {
    it(`a delivery of ${source} is authentic with the current and with the previous secret`, () => {
      assert.equal(ask(source, signed(secret, seconds)), undefined)
      assert.equal(ask(source, signed(other, seconds), { secrets: [secret, other] }), undefined)
    })

    it(`a delivery of ${source} is refused with another secret, without a signature, and with a partial one`, () => {
      assert.match(ask(source, signed(other, seconds))!, /not match|is not the secret/)
      assert.match(ask(source, {})!, /no header/)
      for (const [name, value] of Object.entries(signed(secret, seconds))) {
        assert.equal(typeof ask(source, { ...signed(secret, seconds), [name]: '' }), 'string', name)
        assert.equal(typeof ask(source, { ...signed(secret, seconds), [name]: value.slice(0, -1) }), 'string', name)
        assert.equal(typeof ask(source, { ...signed(secret, seconds), [name]: `${value}0` }), 'string', name)
      }
    })

    if (!isToken.has(source))
      it(`a delivery of ${source} is refused if a byte of its body differs`, () => {
        const changed = Buffer.from(body)
        changed[5]! ^= 1
        assert.match(ask(source, signed(secret, seconds), { of: changed })!, /does not match/)
        // The same JSON with other bytes is a different body.
        const written = Buffer.from(JSON.stringify(JSON.parse(body.toString())))
        assert.notEqual(written.toString(), body.toString())
        assert.match(ask(source, signed(secret, seconds), { of: written })!, /does not match/)
      })

    if (isStamped.has(source))
      it(`a delivery of ${source} is refused if it was signed more than five minutes before or after now`, () => {
        for (const [away, isGenuine] of [
          [-300, true],
          [-301, false],
          [300, true],
          [301, false],
        ] as const)
          assert.equal(ask(source, signed(secret, seconds + away)) === undefined, isGenuine, String(away))
        // A new timestamp does not make an old signature valid.
        const old = signed(secret, seconds - 900)
        const renewed = Object.fromEntries(
          Object.entries(old).map(([name, value]) => [name, value.replaceAll(String(seconds - 900), String(seconds))]),
        )
        assert.match(ask(source, renewed)!, /does not match/)
        for (const time of ['', 'now', '-1', '1e3', `${seconds}.5`, '99999999999999999999']) {
          const strange = Object.fromEntries(
            Object.entries(signed(secret, seconds)).map(([name, value]) => [
              name,
              value.replaceAll(String(seconds), time),
            ]),
          )
          assert.equal(typeof ask(source, strange), 'string', time)
        }
      })
  })

describe('a delivery by Standard Webhooks', () => {
  const headersOf = (key: string, at = new Date(), of = body) => ({
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(key).sign('msg_1', at, of.toString()),
  })

  it('a Standard Webhooks delivery is authentic with the current or previous secret, and with one of several signatures', () => {
    assert.equal(ask('standard_webhooks', headersOf(secret)), undefined)
    assert.equal(ask('standard_webhooks', headersOf(other), { secrets: [secret, other] }), undefined)
    const headers = headersOf(secret)
    const several = { ...headers, 'webhook-signature': `v1,AAAA v1a,BBBB ${headers['webhook-signature']}` }
    assert.equal(ask('standard_webhooks', several), undefined)
  })

  it('a Standard Webhooks delivery with another secret, body, id or timestamp, or with a missing header, is refused', () => {
    const headers = headersOf(secret)
    assert.match(ask('standard_webhooks', headersOf(other))!, /No matching signature/)
    assert.match(ask('standard_webhooks', headers, { of: Buffer.from('{}') })!, /No matching signature/)
    assert.match(ask('standard_webhooks', { ...headers, 'webhook-id': 'msg_2' })!, /No matching signature/)
    assert.match(ask('standard_webhooks', headersOf(secret, new Date(Date.now() - 301_000)))!, /too old/)
    assert.match(ask('standard_webhooks', headersOf(secret, new Date(Date.now() + 310_000)))!, /too new/)
    for (const name of Object.keys(headers)) {
      const { [name as keyof typeof headers]: _, ...rest } = headers
      assert.match(ask('standard_webhooks', rest)!, /Missing required headers/)
    }
  })

  it('a Standard Webhooks delivery is verified without parsing its body', () => {
    for (const text of ['', 'no JSON', '{"half":'])
      assert.equal(
        ask('standard_webhooks', headersOf(secret, new Date(), Buffer.from(text)), { of: Buffer.from(text) }),
        undefined,
      )
  })
})

describe('a signature in the form that a trigger says', () => {
  for (const algorithm of ['sha256', 'sha512', 'sha1'] as const)
    for (const encoding of ['hex', 'base64'] as const)
      it(`a custom signature is verified with ${algorithm} in ${encoding}`, () => {
        const hmac = { header: 'X-Signature', algorithm, encoding, prefix: 'mac=' }
        const digest = mac(secret, body, algorithm)
        const headers = { 'x-signature': `mac=${digest.digest(encoding)}` }
        assert.equal(ask('hmac', headers, { hmac }), undefined)
        assert.match(ask('hmac', headers, { hmac, secrets: [other] })!, /does not match/)
        assert.match(ask('hmac', { 'x-signature': headers['x-signature'].slice(4) }, { hmac })!, /does not match/)
      })

  it('a custom signature with a timestamp header covers timestamp and body, in seconds or milliseconds', () => {
    const hmac = { header: 'X-Signature', timestamp_header: 'X-Time' }
    for (const time of [String(seconds), String(now)]) {
      const headers = { 'x-time': time, 'x-signature': mac(secret, over(`${time}.`)).digest('hex') }
      assert.equal(ask('hmac', headers, { hmac }), undefined)
      assert.match(ask('hmac', headers, { hmac, at: now + 301_000 })!, /more than 300 seconds/)
      assert.match(ask('hmac', { 'x-signature': headers['x-signature'] }, { hmac })!, /has no timestamp/)
    }
    assert.match(
      ask('hmac', { 'x-time': String(seconds), 'x-signature': mac(secret, body).digest('hex') }, { hmac })!,
      /does not match/,
    )
  })

  it('an e-mail is authenticated by a custom signature if configured, and otherwise by a token', () => {
    const hmac = { header: 'X-Signature' }
    assert.equal(ask('email', { 'x-signature': mac(secret, body).digest('hex') }, { hmac }), undefined)
    assert.equal(typeof ask('email', { authorization: `Bearer ${secret}` }, { hmac }), 'string')
    assert.equal(ask('email', { authorization: `Bearer ${secret}` }), undefined)
    assert.equal(typeof ask('email', { authorization: `Bearer ${other}` }), 'string')
  })
})
