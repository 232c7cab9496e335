import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type CircuitBreaker, type CallEnd, makeCircuitBreaker } from './circuit-breaker.ts'
import { ModelError } from './model.ts'

const down = new ModelError('provider_unavailable', 'it answered 500.', { retryable: true })
const silent = new ModelError('provider_timeout', 'No answer began.', { retryable: true })
const refused = new ModelError('provider_refused_request', 'No.', { retryable: false })
const busy = new ModelError('provider_unavailable', 'Later.', { retryable: true, retry_after: 5 })

describe('a model that does not answer', () => {
  let now: number
  const make = (): CircuitBreaker => {
    now = 1000
    return makeCircuitBreaker({ now: () => now })
  }
  const call = (circuitBreaker: CircuitBreaker, how: CallEnd, model = 'a/b'): void => {
    const entered = circuitBreaker.enter(model)
    assert.ok('ended' in entered, 'it may be called')
    entered.ended(how)
  }
  const refusal = (circuitBreaker: CircuitBreaker, model = 'a/b'): ModelError => {
    const entered = circuitBreaker.enter(model)
    assert.ok('refusal' in entered, 'it may not be called')
    return entered.refusal
  }
  const fail = (circuitBreaker: CircuitBreaker, times: number, model?: string): void => {
    for (let i = 0; i < times; i++) call(circuitBreaker, i % 2 ? down : silent, model)
  }

  it("ten failures in a row open the circuit breaker of that model only, with the last error's code", () => {
    const circuitBreaker = make()
    fail(circuitBreaker, 9)
    call(circuitBreaker, 'answered')
    fail(circuitBreaker, 10)
    const { code, retryable, retry_after, message } = refusal(circuitBreaker)
    assert.deepEqual([code, retryable, retry_after], ['provider_unavailable', true, 1])
    assert.match(message, /^a\/b was not called, because its last 10 calls failed\. .*it answered 500/)
    call(circuitBreaker, 'answered', 'a/c')
    now += 400
    assert.equal(refusal(circuitBreaker).retry_after, 0.6)
  })

  it('an open circuit breaker lets one probe through at a time, after waits that double up to ten seconds', () => {
    const circuitBreaker = make()
    fail(circuitBreaker, 10)
    for (const wait_ms of [1000, 2000, 4000, 8000, 10_000, 10_000]) {
      now += wait_ms - 1
      refusal(circuitBreaker)
      now += 1
      const probe = circuitBreaker.enter('a/b')
      assert.ok('ended' in probe)
      // However long it is silent.
      now += 300_000
      assert.equal(refusal(circuitBreaker).retry_after, wait_ms / 1000)
      assert.equal(circuitBreaker.tried_ms('a/b'), wait_ms)
      probe.ended(silent)
      assert.equal(circuitBreaker.tried_ms('a/b'), 0)
    }
    now += 10_000
    call(circuitBreaker, 'answered')
    fail(circuitBreaker, 9)
    call(circuitBreaker, 'answered')
  })

  it('late failures, aborted calls and errors with retry_after do not extend the wait of an open circuit breaker', () => {
    const circuitBreaker = make()
    const underWay = Array.from({ length: 30 }, () => circuitBreaker.enter('a/b'))
    for (const entered of underWay) {
      assert.ok('ended' in entered)
      entered.ended(down)
    }
    assert.equal(refusal(circuitBreaker).retry_after, 1)
    now += 1000
    call(circuitBreaker, 'cut')
    call(circuitBreaker, busy)
    // Neither an answer nor a failure: the next one is let through at once.
    call(circuitBreaker, down)
    assert.equal(refusal(circuitBreaker).retry_after, 2)
  })

  it('the first part of an answer closes the circuit breaker', () => {
    const circuitBreaker = make()
    fail(circuitBreaker, 10)
    now += 1000
    const probe = circuitBreaker.enter('a/b')
    assert.ok('ended' in probe)
    probe.ended('answered')
    fail(circuitBreaker, 8)
    probe.ended(down)
    call(circuitBreaker, 'answered')
  })

  it('a refused request counts as a response of the model', () => {
    const circuitBreaker = make()
    fail(circuitBreaker, 9)
    call(circuitBreaker, refused)
    fail(circuitBreaker, 9)
    call(circuitBreaker, 'answered')
  })

  it('circuit breakers use bounded memory and exclude the built-in models', () => {
    const circuitBreaker = make()
    fail(circuitBreaker, 10, 'a/first')
    for (let i = 0; i < 1000; i++) call(circuitBreaker, down, `a/${i}`)
    call(circuitBreaker, 'answered', 'a/first')
    fail(circuitBreaker, 20, 'builtin/script')
    call(circuitBreaker, 'answered', 'builtin/script')
  })
})
