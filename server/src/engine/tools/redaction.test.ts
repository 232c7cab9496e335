import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { replaceEncoded } from './encoded-text.ts'
import { makeRedaction } from './redaction.ts'
import { ToolError, toolOutputMax } from './tool.ts'

const everyByte = (value: string): string =>
  [...Buffer.from(value)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('')
const secret = 'canary "s3cret"\n/+é'
const { text, answer, error } = makeRedaction([secret, 'other-canary'])

describe('a secret in what a tool says', () => {
  for (const [form, written] of [
    ['as it is', secret],
    ['in a URL', encodeURIComponent(secret)],
    ['in a form', new URLSearchParams({ a: secret }).toString()],
    ['in a URL with small digits', encodeURIComponent(secret).toLowerCase()],
    ['in a URL with all of it encoded', everyByte(secret)],
    ['in a URL with all of it encoded in small digits', everyByte(secret).toLowerCase()],
    [
      'in a URL with every second character encoded',
      [...secret].map((one, i) => (i % 2 ? everyByte(one) : one)).join(''),
    ],
    ['in hexadecimal', Buffer.from(secret).toString('hex')],
    ['in hexadecimal with capitals', Buffer.from(secret).toString('hex').toUpperCase()],
    ['in HTML', secret.replaceAll('"', '&quot;').replaceAll('é', '&#233;')],
    ['in HTML as numbers', [...secret].map((one) => `&#${one.codePointAt(0)};`).join('')],
    ['in HTML as hexadecimal numbers', [...secret].map((one) => `&#X00${one.codePointAt(0)!.toString(16)};`).join('')],
    ['in JSON', JSON.stringify({ a: secret })],
    ['in JSON in JSON', JSON.stringify({ a: JSON.stringify({ b: secret }) })],
    ['in JSON of ASCII alone', JSON.stringify(secret).replace('é', '\\u00e9').replace('/', '\\/')],
    ['in base64', Buffer.from(secret).toString('base64')],
    ['in base64url', Buffer.from(secret).toString('base64url')],
    ['in Basic authentication', `Basic ${Buffer.from(`user:${secret}`).toString('base64')}`],
    ['after two bytes in base64', Buffer.from(`ab${secret}cd`).toString('base64')],
    ['twice', `${secret}${secret}`],
  ] as const)
    it(`a secret in the result of a tool is redacted: ${form}`, () => {
      const received = text(`before ${written} after`)
      assert.match(received, /^before .*\[redacted\].* after$/s)
      assert.equal(received.includes('canary'), false, received)
      for (const part of Buffer.from(received.replaceAll('[redacted]', ' '))
        .toString()
        .split(/[\s:]+/))
        assert.equal(Buffer.from(part, 'base64').toString().includes('canar'), false, received)
    })

  it('no character of a secret is left at the end of base64', () => {
    for (const value of ['eight-by', 'nine-byte', 'ten-bytes!'])
      for (const before of ['', 'a', 'ab', 'user:'])
        for (const encoding of ['base64', 'base64url'] as const) {
          const written = Buffer.from(before + value).toString(encoding)
          const own = Buffer.from(before).toString('base64url')
          const left = makeRedaction([value]).text(`${written} and more`)
          assert.match(left, /^[\w-]*\[redacted\] and more$/, written)
          assert.ok(left.indexOf('[') <= own.length, left)
        }
  })

  it('secrets are redacted in the messages of all errors', () => {
    const failed = error(
      new ToolError('x', `no ${secret}`, { uncertain: true, network: { bytes_in: 1, bytes_out: 2 } }),
    )
    assert.equal(failed.message, 'no [redacted]')
    assert.deepEqual([failed.code, failed.uncertain, failed.network], ['x', true, { bytes_in: 1, bytes_out: 2 }])
    assert.equal(answer({ content: '', error: { code: 'y', message: secret } }).error?.message, '[redacted]')
  })

  it('a secret that contains another one is redacted as a whole', () => {
    const both = makeRedaction(['abcd', 'xx-abcd-yy'])
    assert.equal(both.text('xx-abcd-yy abcd'), '[redacted] [redacted]')
  })

  it('a value of fewer than four characters is not redacted', () => {
    assert.equal(makeRedaction(['abc', '']).text('abc and more'), 'abc and more')
  })

  it('no part of a secret is left where a text is cut', () => {
    for (let at = toolOutputMax - 200; at < toolOutputMax + 50; at += 3) {
      const { content } = answer({ content: `${'x'.repeat(at)}${'other-canary '.repeat(30)}` })
      assert.ok(content.length <= toolOutputMax)
      assert.equal(content.includes('oth'), false, String(at))
      assert.match(content, /\n\[cut: \d+ characters in all\]$/)
    }
  })

  it('no text that contains a secret shows it after redaction', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4, unit: 'grapheme' }), fc.string(), fc.string(), (value, before, after) => {
        fc.pre(!'[redacted]'.includes(value))
        const redaction = makeRedaction([value])
        for (const form of [value, encodeURIComponent(value.toWellFormed()), JSON.stringify(value).slice(1, -1)])
          assert.equal(redaction.text(`${before}${form}${after}`).includes('[redacted]'), true)
      }),
    )
  })
})

it('encoded text without a secret is unchanged, even if its encoding is invalid', () => {
  for (const given of ['100%25 of &lt;b&gt; %C3%A9', '%ff%fe&#99999999; 5 % and &so; %e2%82', '&#0;&#xd800;'])
    assert.equal(text(given), given)
})

it('no part of overlapping encoded secrets is left', () => {
  assert.equal(replaceEncoded('a first%26second b', ['&second', 'first&'], '[redacted]'), 'a [redacted][redacted] b')
})

it('a text within its bound is unchanged', () => {
  const content = 'x'.repeat(toolOutputMax)
  assert.equal(answer({ content }).content, content)
  assert.equal(answer({ content: `${content}y` }).content.length <= toolOutputMax, true)
})

it('a result is cleaned for storage in the database', () => {
  assert.equal(answer({ content: 'a\u0000b\ud800c' }).content, 'a\uFFFDb\uFFFDc')
})
