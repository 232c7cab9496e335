import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSecrets } from '../../platform/crypto/secrets.ts'
import { formTokens } from './form-token.ts'

const tokens = formTokens(makeSecrets('a secret key for tests, 32 characters'))

test('a form token is valid only for its form and browser', () => {
  const token = tokens.issue('consent', 'session', 'authorization')
  assert.equal(tokens.verify(token, 'consent', 'session', 'authorization'), true)
  for (const parts of [
    ['logout', 'session', 'authorization'],
    ['consent', 'other', 'authorization'],
    ['consent', 'session'],
    ['consent', 'session', 'authorization', ''],
    ['consent', 'sessionauthorization'],
    ['consentsession', 'authorization'],
  ] as const) {
    const [form, ...bound] = parts
    assert.equal(tokens.verify(token, form, ...bound), false, parts.join('|'))
  }
  for (const broken of [undefined, '', 'nope', token.slice(1), `${token}AAAA`]) {
    assert.equal(tokens.verify(broken, 'consent', 'session', 'authorization'), false)
  }
})

test('form tokens of two secret keys differ', () => {
  const others = formTokens(makeSecrets('another secret key, also 32 characters'))
  assert.equal(tokens.verify(others.issue('login', 'browser'), 'login', 'browser'), false)
})
