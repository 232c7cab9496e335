import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { SignalKind, SignalListener } from '../../events/streams/streams-bus.ts'
import { makeCooldown } from './cooldown.ts'

/** Two processes on one database, as far as signals go. */
function twoBuses() {
  const ends = [new Set<SignalListener>(), new Set<SignalListener>()] as const
  const sent: string[] = []
  const bus = (here: 0 | 1) => ({
    notify: (_kind: SignalKind, id = '') => {
      sent.push(id)
      for (const listener of ends[here]) listener(id, 'here')
      for (const listener of ends[here === 0 ? 1 : 0]) listener(id, 'elsewhere')
    },
    on: (_kind: SignalKind, listener: SignalListener) => {
      ends[here].add(listener)
      return () => void ends[here].delete(listener)
    },
  })
  return { first: bus(0), second: bus(1), sent }
}

describe('a provider that asks for patience', () => {
  let now = 1_000_000_000_000
  const at = () => now

  it('no call is made during a cooldown, and calls are made after it', () => {
    const cooldown = makeCooldown({ now: at })
    assert.equal(cooldown.until('openai/gpt-4o'), undefined)
    cooldown.note('openai/gpt-4o', 7)
    assert.equal(cooldown.until('openai/gpt-4o'), now + 7000)
    assert.equal(cooldown.until('openai/gpt-4o-mini'), undefined, 'another model has its own limits')
    now += 7000
    assert.equal(cooldown.until('openai/gpt-4o'), undefined)
  })

  it('after a cooldown one call goes first, and the others follow once it is answered, or one per second', () => {
    const cooldown = makeCooldown({ now: at })
    const mayAsk = () => Array.from({ length: 5 }, () => cooldown.enter('a/b').mayAsk).filter(Boolean).length
    assert.equal(mayAsk(), 5, 'no call was refused yet')
    cooldown.note('a/b', 2)
    now += 1999
    assert.equal(mayAsk(), 0)
    now += 1
    assert.equal(mayAsk(), 1)
    assert.equal(cooldown.until('a/b'), undefined, 'a call that waits for the first is not deferred')
    now += 1000
    assert.equal(mayAsk(), 1, 'the first is silent')
    cooldown.answered('a/b')
    assert.equal(mayAsk(), 5)
  })

  it('a cooldown that is renewed by the first call refuses the waiting calls', () => {
    const cooldown = makeCooldown({ now: at })
    cooldown.note('a/b', 2, 'provider_unavailable')
    const waits = cooldown.enter('a/b')
    now += 2000
    assert.equal(cooldown.enter('a/b').mayAsk, true)
    cooldown.note('a/b', 3, 'provider_unavailable')
    cooldown.answered('a/b')
    const asked_until = cooldown.enter('a/b')
    assert.ok(!waits.mayAsk && !asked_until.mayAsk)
    assert.equal(asked_until.asked_until - waits.asked_until, 3000)
    const { code, retryable, retry_after } = asked_until.refusal
    assert.deepEqual(
      [code, retryable, retry_after],
      ['provider_unavailable', true, 3],
      'an answer to an older call ends nothing',
    )
  })

  it('a cooldown can be extended but not shortened, and lasts at most an hour', () => {
    const cooldown = makeCooldown({ now: at })
    cooldown.note('a/b', 60)
    cooldown.note('a/b', 5)
    assert.equal(cooldown.until('a/b'), now + 60_000)
    cooldown.note('a/b', 90)
    assert.equal(cooldown.until('a/b'), now + 90_000)
    for (const seconds of [1e300, Infinity]) {
      cooldown.note('a/b', seconds)
      assert.equal(cooldown.until('a/b'), now + 3_600_000)
    }
    for (const seconds of [0, -5, NaN]) cooldown.note('a/c', seconds)
    assert.equal(cooldown.until('a/c'), undefined)
  })

  it('a cooldown reaches other processes for any name of a model', () => {
    const { first, second, sent } = twoBuses()
    const [one, other] = [makeCooldown({ bus: first, now: at }), makeCooldown({ bus: second, now: at })]
    for (const name of ['openai/gpt-4o', 'local/modèle "ü"@7', 'x/\ud800']) {
      one.note(name, 30)
      assert.equal(other.until(name.toWellFormed()), now + 30_000, name)
      one.note(name, 40, 'provider_unavailable')
      const asked_until = other.enter(name.toWellFormed())
      assert.ok(!asked_until.mayAsk && asked_until.refusal.code === 'provider_unavailable', name)
    }
    assert.ok(sent.every((id) => /^[\x21-\x7e]+$/.test(id)))
    one.note('openai/gpt-4o', 10)
    assert.equal(sent.length, 6, 'what is no news is not asked_until')
  })

  it('invalid cooldown signals are ignored', () => {
    const { first, second } = twoBuses()
    const cooldown = makeCooldown({ bus: first, now: at })
    for (const id of ['', '@', 'a/b@', 'a/b@soon', `%zz@${now + 5000}`, `a/b@-${now}`, 'a/b@1'])
      second.notify('cooldown', id)
    assert.equal(cooldown.until('a/b'), undefined)
    second.notify('cooldown', 'a/b@999999999999999')
    assert.equal(cooldown.until('a/b'), now + 3_600_000)
  })

  it('cooldowns use bounded memory', () => {
    const cooldown = makeCooldown({ now: at })
    for (let i = 0; i <= 1000; i++) cooldown.note(`a/${i}`, 60)
    assert.deepEqual([cooldown.until('a/0'), cooldown.until('a/1000')], [undefined, now + 60_000])
  })

  it('built-in models have no cooldowns', () => {
    const cooldown = makeCooldown({ now: at })
    cooldown.note('builtin/script', 60)
    assert.equal(cooldown.until('builtin/script'), undefined)
  })
})
