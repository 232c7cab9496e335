import assert from 'node:assert/strict'
import { it } from 'node:test'
import { Canaries } from './canaries.ts'

const secret = 'a canary, "of" ü & 日本?'
const bytes = Buffer.from(secret)
const encodings: Record<string, (text: string) => string> = {
  plain: (text) => text,
  JSON: (text) => JSON.stringify({ text }),
  'JSON in JSON': (text) => JSON.stringify({ text: Buffer.from(text).toString('base64') }),
  'a part of a URL': (text) => `https://x.example/?a=${encodeURIComponent(text)}&b`,
  hex: (text) => `\\x00${Buffer.from(text).toString('hex')}00`,
  'a URL with every byte escaped': (text) => Buffer.from(text).toString('hex').replaceAll(/../g, '%$&').toUpperCase(),
  base64: (text) => Buffer.from(text).toString('base64'),
  'base64 of something before it': (text) => Buffer.from(`a:${text}:b`).toString('base64'),
  'base64 of something else before it': (text) => Buffer.from(`x${text}`).toString('base64'),
  'base64 for URLs': (text) => Buffer.from(`....${text}`).toString('base64url'),
}

for (const [name, encode] of Object.entries(encodings))
  it(`the search finds a secret as ${name}, and nothing in a text without one`, () => {
    const canaries = new Canaries()
    assert.equal(canaries.plant('secret', secret), secret)
    const [found, ...more] = canaries.found({ here: `before ${encode(secret)} after`, there: encode('nothing at all') })
    assert.match(found!, /^secret in here: /)
    assert.deepEqual(more, [])
  })

it('the search also finds the decoded bytes of the secret of a webhook', () => {
  const canaries = new Canaries()
  canaries.plant('secret', `whsec_${bytes.toString('base64')}`)
  for (const text of [bytes.toString('hex'), bytes.toString('base64'), Buffer.from(`?${secret}`).toString('base64')])
    assert.equal(canaries.found({ here: text }).length, 1, text)
})
