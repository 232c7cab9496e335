import { ModelError } from './model.ts'
import { nameOfKey } from './organization/call-key.ts'

/**
 * Circuit breaker (decision 0019): keeps tasks from calling a model that does not respond. After `failuresMax` failures
 * in a row (connection errors, 5xx without a cooldown, timeouts), further calls are refused for a while. Then one call
 * at a time is let through as a probe; the wait doubles with each probe that fails. The first answer closes the
 * breaker. Each process has its own breakers.
 */
export interface CircuitBreaker {
  /**
   * Requests permission to call `provider/model`. Returns a function to report the outcome, or the error of the
   * refusal. A refusal counts as a failed call with the code of the failures before it, to retry after `retry_after`
   * seconds. The first part of an answer counts as success and may be reported before the call ends.
   */
  enter(provider_model: string): { refusal: ModelError } | { ended(how: CallEnd): void }
  /** Milliseconds until another check is useful while a probe is in flight; 0 without one. */
  tried_ms(provider_model: string): number
}

/** How a call ended: with an answer, with an error, or cut by Cadre, which says nothing about the model. */
export type CallEnd = 'answered' | 'cut' | ModelError

/** Number of failures in a row that open the breaker. */
const failuresMax = 10
/** Time until the next probe; doubled each time that a probe fails. */
const wait_ms = { first: 1000, max: 10_000 }
/** Maximum number of models; the oldest entry is removed first. */
const entriesMax = 1000

interface Trouble {
  failures: number
  /** 0 while the breaker is closed. */
  wait_ms: number
  until: number
  isProbed: boolean
  last: ModelError
}

/** `now` returns milliseconds of a monotonic clock. */
export function makeCircuitBreaker({ now = () => performance.now() }: { now?: () => number } = {}): CircuitBreaker {
  const troubles = new Map<string, Trouble>()

  const fail = (provider_model: string, error: ModelError, isProbe: boolean): void => {
    const trouble = troubles.get(provider_model) ?? { failures: 0, wait_ms: 0, until: 0, isProbed: false, last: error }
    troubles.set(provider_model, trouble)
    const [oldest] = troubles.keys()
    if (troubles.size > entriesMax && oldest !== undefined) troubles.delete(oldest)
    trouble.failures += 1
    trouble.last = error
    // Calls in flight when the breaker opened say nothing new.
    if (trouble.failures < failuresMax || (trouble.wait_ms > 0 && !isProbe)) return
    trouble.wait_ms = Math.min(Math.max(trouble.wait_ms * 2, wait_ms.first), wait_ms.max)
    trouble.until = now() + trouble.wait_ms
  }
  const isOpen = ({ wait_ms: wait, until, isProbed }: Trouble): boolean => wait > 0 && (isProbed || until > now())

  return {
    tried_ms(provider_model) {
      const trouble = troubles.get(provider_model)
      return trouble?.isProbed === true ? trouble.wait_ms : 0
    },
    enter(provider_model) {
      // The errors of the built-in models belong to each script.
      if (provider_model.startsWith('builtin/')) return { ended: () => {} }
      const trouble = troubles.get(provider_model)
      if (trouble && isOpen(trouble)) {
        const left_ms = trouble.isProbed ? trouble.wait_ms : trouble.until - now()
        return { refusal: refusal(provider_model, trouble, left_ms) }
      }
      const isProbe = trouble !== undefined && trouble.wait_ms > 0
      if (isProbe) trouble.isProbed = true
      return {
        ended(how) {
          if (isProbe) trouble.isProbed = false
          if (how === 'cut' || (how instanceof ModelError && how.retry_after !== undefined)) return
          if (how instanceof ModelError && hasNoResponse(how)) fail(provider_model, how, isProbe)
          else troubles.delete(provider_model)
        },
      }
    },
  }
}

/** Whether there was no response. A refused request or a 429 is a response. */
function hasNoResponse({ code }: ModelError): boolean {
  return code === 'provider_unavailable' || code === 'provider_timeout'
}

function refusal(provider_model: string, { failures, last }: Trouble, left_ms: number): ModelError {
  return new ModelError(
    last.code,
    `${nameOfKey(provider_model)} was not called, because its last ${failures} calls failed. The last error: ${last.message}`,
    { retryable: true, retry_after: Math.max(left_ms, 1) / 1000 },
  )
}
