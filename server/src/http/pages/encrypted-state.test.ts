import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSecrets } from '../../platform/crypto/secrets.ts'
import { encryptedState } from './encrypted-state.ts'

const secrets = makeSecrets('a secret key for tests, 32 characters')

test('an encrypted value is decrypted only in the context that it is bound to', () => {
  const sealed = encryptedState<{ state: string }>(secrets, 'attempt', 60)
  const text = sealed.seal({ state: 'readable?' }, 'okta')
  assert.match(text, /^[\w-]+$/)
  assert.ok(!Buffer.from(text, 'base64url').toString('latin1').includes('readable'))
  assert.deepEqual(sealed.open(text, 'okta'), { state: 'readable?' })
  assert.equal(sealed.open(text, 'google'), undefined)
  assert.equal(encryptedState(secrets, 'another use', 60).open(text, 'okta'), undefined)
  assert.equal(encryptedState(makeSecrets('x'.repeat(32)), 'attempt', 60).open(text, 'okta'), undefined)
})

test('an encrypted value that was changed, cut or forged is undefined', () => {
  const sealed = encryptedState<{ n: number }>(secrets, 'attempt', 60)
  const text = sealed.seal({ n: 1 }, 'okta')
  const last = text.at(-2) === 'A' ? 'B' : 'A'
  for (const wrong of [
    undefined,
    '',
    'x',
    '%%%',
    text.slice(0, -4),
    `${text.slice(0, -2)}${last}${text.at(-1)}`,
    `${text}AAAA`,
  ])
    assert.equal(sealed.open(wrong, 'okta'), undefined, wrong)
})

test('an encrypted value is undefined once it has expired', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_000_000 })
  const sealed = encryptedState<{ n: number }>(secrets, 'attempt', 600)
  const text = sealed.seal({ n: 1 }, 'okta')
  t.mock.timers.setTime(1_000_000 + 599_999)
  assert.deepEqual(sealed.open(text, 'okta'), { n: 1 })
  t.mock.timers.setTime(1_000_000 + 600_000)
  assert.equal(sealed.open(text, 'okta'), undefined)
})
