import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DamagedSecret, makeSecrets, WrongSecretKey } from './secrets.ts'

const key = 'k'.repeat(32)
const secrets = makeSecrets(key)

describe('secrets', () => {
  it('a value can be decrypted after a restart', () => {
    for (const text of ['', 'sk-123', 'ü😀'.repeat(1000)]) {
      assert.equal(
        makeSecrets(key).decrypt('agent.environment', secrets.encrypt('agent.environment', text, 'agent_1'), 'agent_1'),
        text,
      )
    }
  })

  it('secrets of earlier builds can be decrypted, and signatures stay the same', () => {
    const stored = Buffer.from('AfcohSvMcrArANeOPQ7IHvgS/Z3ROxPI9cfhXa9I1FCZXAtBjA==', 'base64')
    assert.equal(secrets.decrypt('agent.environment', stored, 'agent_1'), 'kept')
    assert.equal(secrets.hmac('cursor', 'text').toString('base64url'), 'FYtvd3GIMhmnohw-5aVCs6aAOTNA8YJkHV1dZDZVn7c')
    assert.deepEqual(secrets.signingKeys('cookie'), ['l4xo6NLrFf2CzMWKfymYa0e5x_Yazz-oXj5W8fnuCxA'])
  })

  it('the same text is encrypted differently each time', () => {
    const [one, two] = [secrets.encrypt('a', 'canary-text', 'row'), secrets.encrypt('a', 'canary-text', 'row')]
    assert.notDeepEqual(one, two)
    assert.equal(one.includes('canary'), false)
  })

  it('a value of another row or label cannot be decrypted', () => {
    const encrypted = secrets.encrypt('webhook.secret', 'text', 'wh_1')
    assert.throws(() => secrets.decrypt('webhook.secret', encrypted, 'wh_2'), DamagedSecret)
    assert.throws(() => secrets.decrypt('provider.key', encrypted, 'wh_1'), DamagedSecret)
  })

  it('a value with any changed or missing byte cannot be decrypted', () => {
    const encrypted = secrets.encrypt('a', 'text', 'row')
    for (let at = 0; at < encrypted.length; at++) {
      const changed = Buffer.from(encrypted)
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at)
      assert.throws(() => secrets.decrypt('a', changed, 'row'), at >= 1 && at < 5 ? WrongSecretKey : DamagedSecret)
      assert.throws(() => secrets.decrypt('a', encrypted.subarray(0, at), 'row'), DamagedSecret)
    }
  })

  it('a wrong key and a damaged value have different errors, which do not contain the key', () => {
    const wrong = makeSecrets('another key of 32 characters and more')
    assert.throws(
      () => wrong.decrypt('a', secrets.encrypt('a', 'text', 'row'), 'row'),
      (error) => {
        assert.ok(error instanceof WrongSecretKey)
        assert.match(error.message, /another CADRE_SECRET_KEY/)
        assert.equal(error.message.includes(key), false)
        return true
      },
    )
  })

  it('a secret key of fewer than 32 characters is refused', () => {
    assert.throws(() => makeSecrets('k'.repeat(31)), RangeError)
  })

  it('a fallback key only decrypts and verifies; the first key encrypts and signs', () => {
    const next = makeSecrets('the key that comes next, of 32 characters', key)
    const alone = makeSecrets('the key that comes next, of 32 characters')
    assert.equal(next.decrypt('a', secrets.encrypt('a', 'text', 'row'), 'row'), 'text')
    assert.equal(alone.decrypt('a', next.encrypt('a', 'text', 'row'), 'row'), 'text')
    assert.deepEqual([next.key_id, alone.key_id, secrets.key_id].map(next.reads), [true, true, true])
    assert.equal(alone.reads(secrets.key_id), false)
    assert.deepEqual(next.signingKeys('cookie'), [...alone.signingKeys('cookie'), ...secrets.signingKeys('cookie')])
    const [ours, theirs] = [next.hmac('a', 'text'), secrets.hmac('a', 'text')]
    assert.deepEqual(ours, alone.hmac('a', 'text'))
    assert.deepEqual(
      [ours, theirs, Buffer.alloc(32), Buffer.alloc(0)].map((mac) => next.isHmac('a', 'text', mac)),
      [true, true, false, false],
    )
    assert.deepEqual([alone.isHmac('a', 'text', theirs), next.isHmac('b', 'text', ours)], [false, false])
  })

  it('an HMAC depends on its label, and is the same in every process', () => {
    assert.deepEqual(makeSecrets(key).hmac('cursor', 'text'), secrets.hmac('cursor', 'text'))
    assert.notDeepEqual(secrets.hmac('cursor', 'text'), secrets.hmac('csrf', 'text'))
    assert.deepEqual(makeSecrets(key).signingKeys('cookie'), secrets.signingKeys('cookie'))
    assert.match(secrets.signingKeys('cookie')[0] ?? '', /^[A-Za-z0-9_-]{43}$/)
  })
})
