import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Breaker, type CallEnd, makeBreaker } from './circuit-breaker.ts'
import { ModelError } from './model.ts'

const down = new ModelError('provider_unavailable', 'it answered 500.', { retryable: true })
const silent = new ModelError('provider_timeout', 'No answer began.', { retryable: true })
const refused = new ModelError('provider_refused_request', 'No.', { retryable: false })
const patience = new ModelError('provider_unavailable', 'Later.', { retryable: true, retry_after: 5 })

describe('a model that does not answer', () => {
  let now: number
  const make = (): Breaker => {
    now = 1000
    return makeBreaker({ now: () => now })
  }
  const call = (breaker: Breaker, how: CallEnd, model = 'a/b'): void => {
    const entered = breaker.enter(model)
    assert.ok('ended' in entered, 'it may be called')
    entered.ended(how)
  }
  const refusal = (breaker: Breaker, model = 'a/b'): ModelError => {
    const entered = breaker.enter(model)
    assert.ok('refusal' in entered, 'it may not be called')
    return entered.refusal
  }
  const fail = (breaker: Breaker, times: number, model?: string): void => {
    for (let i = 0; i < times; i++) call(breaker, i % 2 ? down : silent, model)
  }

  it('is left alone after ten failures in a row, with the code of the last one, and no other model is', () => {
    const breaker = make()
    fail(breaker, 9)
    call(breaker, 'answered')
    fail(breaker, 10)
    const { code, retryable, retry_after, message } = refusal(breaker)
    assert.deepEqual([code, retryable, retry_after], ['provider_unavailable', true, 1])
    assert.match(message, /^a\/b was not asked: its last 10 calls failed\. .*it answered 500/)
    call(breaker, 'answered', 'a/c')
    now += 400
    assert.equal(refusal(breaker).retry_after, 0.6)
  })

  it('is then asked by one call at a time, after waits that double up to ten seconds', () => {
    const breaker = make()
    fail(breaker, 10)
    for (const wait_ms of [1000, 2000, 4000, 8000, 10_000, 10_000]) {
      now += wait_ms - 1
      refusal(breaker)
      now += 1
      const probe = breaker.enter('a/b')
      assert.ok('ended' in probe)
      // However long it is silent.
      now += 300_000
      assert.equal(refusal(breaker).retry_after, wait_ms / 1000)
      assert.equal(breaker.tried_ms('a/b'), wait_ms)
      probe.ended(silent)
      assert.equal(breaker.tried_ms('a/b'), 0)
    }
    now += 10_000
    call(breaker, 'answered')
    fail(breaker, 9)
    call(breaker, 'answered')
  })

  it('is judged by no call that was cut by us, and by those that it was slow to fail no further', () => {
    const breaker = make()
    const underWay = Array.from({ length: 30 }, () => breaker.enter('a/b'))
    for (const entered of underWay) {
      assert.ok('ended' in entered)
      entered.ended(down)
    }
    assert.equal(refusal(breaker).retry_after, 1)
    now += 1000
    call(breaker, 'cut')
    call(breaker, patience)
    // Neither an answer nor a failure: the next one is let through at once.
    call(breaker, down)
    assert.equal(refusal(breaker).retry_after, 2)
  })

  it('answers again as soon as an answer begins, however that ends', () => {
    const breaker = make()
    fail(breaker, 10)
    now += 1000
    const probe = breaker.enter('a/b')
    assert.ok('ended' in probe)
    probe.ended('answered')
    fail(breaker, 8)
    probe.ended(down)
    call(breaker, 'answered')
  })

  it('has answered where it refuses the request', () => {
    const breaker = make()
    fail(breaker, 9)
    call(breaker, refused)
    fail(breaker, 9)
    call(breaker, 'answered')
  })

  it('takes a bounded place in memory, and is no matter of the test models', () => {
    const breaker = make()
    fail(breaker, 10, 'a/first')
    for (let i = 0; i < 1000; i++) call(breaker, down, `a/${i}`)
    call(breaker, 'answered', 'a/first')
    fail(breaker, 20, 'builtin/script')
    call(breaker, 'answered', 'builtin/script')
  })
})
