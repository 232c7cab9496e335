import { ModelError } from './model.ts'
import { nameOfKey } from './organization/call-key.ts'

/**
 * Keeps tasks from asking a model that does not answer. After `failuresMax` calls in a row that came to nothing (the connection
 * failed, a 5xx that asks for no patience, silence) further calls are refused for a while, which doubles with each call that is let
 * through afterwards, one at a time, and fails too. The first answer ends it. Knowledge is this process's own (decision 0019).
 */
export interface CircuitBreaker {
  /**
   * Asks to call `provider/model`. Returns a function to report the outcome, or the reason of the refusal. A refusal
   * counts as a failed call with the code of the failures before it, to be retried after `retry_after` seconds. The
   * first answer counts as success and may be reported before the call ends.
   */
  enter(provider_model: string): { refusal: ModelError } | { ended(how: CallEnd): void }
  /** While a call that was let through tries whether it answers: milliseconds after which to look again. 0 where none does. */
  tried_ms(provider_model: string): number
}

/** How a call ended: with an answer, with an error, or cut by ourselves, which tells nothing of the model. */
export type CallEnd = 'answered' | 'cut' | ModelError

/** Calls in a row that came to nothing before the model is left alone. */
const failuresMax = 10
/** Until the next call is let through; doubled each time that one fails. */
const wait_ms = { first: 1000, max: 10_000 }
/** Models that are remembered; one more pushes out the one that failed first. */
const entriesMax = 1000

interface Trouble {
  failures: number
  /** 0 until it has failed often enough. */
  wait_ms: number
  until: number
  isProbed: boolean
  last: ModelError
}

/** `now` gives milliseconds that never go back. */
export function makeCircuitBreaker({ now = () => performance.now() }: { now?: () => number } = {}): CircuitBreaker {
  const troubles = new Map<string, Trouble>()

  const fail = (provider_model: string, error: ModelError, isProbe: boolean): void => {
    const trouble = troubles.get(provider_model) ?? { failures: 0, wait_ms: 0, until: 0, isProbed: false, last: error }
    troubles.set(provider_model, trouble)
    const [oldest] = troubles.keys()
    if (troubles.size > entriesMax && oldest !== undefined) troubles.delete(oldest)
    trouble.failures += 1
    trouble.last = error
    // Calls that were under way when it was first left alone say nothing new.
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
      // The errors of the test models are each script's own.
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
          if (how instanceof ModelError && cameToNothing(how)) fail(provider_model, how, isProbe)
          else troubles.delete(provider_model)
        },
      }
    },
  }
}

/** Whether there was no answer at all. A refused request or a 429 is an answer. */
function cameToNothing({ code }: ModelError): boolean {
  return code === 'provider_unavailable' || code === 'provider_timeout'
}

function refusal(provider_model: string, { failures, last }: Trouble, left_ms: number): ModelError {
  return new ModelError(
    last.code,
    `${nameOfKey(provider_model)} was not asked: its last ${failures} calls failed. The last one: ${last.message}`,
    { retryable: true, retry_after: Math.max(left_ms, 1) / 1000 },
  )
}
