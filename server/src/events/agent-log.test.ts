import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { redact } from './agent-log.ts'

describe('what an agent writes into its log', () => {
  it('the log of an agent shows no part of a secret that begins with another one', () => {
    assert.equal(redact('key=token-and-more', ['token', 'token-and-more']), 'key=[redacted]')
    assert.equal(redact('key=and-more-token', ['more', 'and-more-token']), 'key=[redacted]')
  })

  it('the log of an agent shows no part of a secret that contains text like a key', () => {
    const secret = 'user sk-0123456789abcdef password'
    assert.equal(redact(`it was ${secret}`, [secret]), 'it was [redacted]')
  })
})
