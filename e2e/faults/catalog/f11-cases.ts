import { modelFaults } from '../../../server/test/fake-models/fake-model-faults.ts'
import type { FakeBehaviour, FakeRequest } from '../../../server/test/fake-models/fake-model-server.ts'
import { answersGiven } from '../../../server/test/fake-models/fake-chat-messages.ts'

/** What a provider does wrong every time, and what becomes of each task that meets it. */
export interface ProviderCase {
  what: string
  behave: (request: FakeRequest) => FakeBehaviour
  /** The code of its error; null where it completes. */
  code: string | null
  /** Requests that it makes. */
  requests: number
  /** Seconds that the provider asks to be left alone. */
  retry_after?: number
  /** There is no answer, or a 429: most tasks fail without a request (decision 0019). */
  isSpared?: boolean
  /** It takes minutes: left out of the short form. */
  isLong?: boolean
  config?: Record<string, unknown>
}

const attemptsMax = 5
/** Calls of the model and of tools together, of a task that never comes to an end. */
const stepsMax = 9
const retryAfter_s = 2
const silence_ms = 30_000

/** Of those that differ by the piece at which a stream ends, one. */
const isRepeated = ({ what }: { what: string }): boolean => /after piece [24]$/.test(what)

/** Every fault that one call shows, and those that need a conversation, a clock or a bound. */
export const providerCases: readonly ProviderCase[] = [
  ...modelFaults
    .filter((fault) => !isRepeated(fault))
    .map(({ what, behave, code, retryable }): ProviderCase => ({
      what,
      behave,
      code,
      requests: retryable ? attemptsMax : 1,
      isSpared: /answers 500|says how long|resets|piece 1$|arguments of a call|nothing at all/.test(what),
      // Silence before an answer is suffered for 300 s, in the middle of one for 60.
      ...(/says nothing|falls silent/.test(what) ? { isLong: true } : {}),
      ...(/says nothing/.test(what) ? { config: { retry: { max_attempts: 1 } }, requests: 1 } : {}),
    })),
  {
    what: `answers 429 and asks for ${retryAfter_s} s`,
    behave: () => ({ do: 'status', status: 429, headers: { 'retry-after': String(retryAfter_s) } }),
    code: 'provider_rate_limited',
    requests: attemptsMax,
    retry_after: retryAfter_s,
    isSpared: true,
  },
  {
    what: 'says nothing for 30 s, and then answers',
    behave: () => ({ do: 'answer', delay_ms: silence_ms, text: 'At last.' }),
    code: null,
    requests: 1,
  },
  {
    what: 'asks for a tool with arguments that are no JSON',
    behave: ({ body }) =>
      answersGiven(body) === 0
        ? { do: 'answer', tool_calls: [{ name: 'current_time', arguments: '{"time_zone": "U' }] }
        : { do: 'answer', text: 'Sorry.' },
    code: null,
    requests: 2,
  },
  {
    what: 'asks for tools without end',
    behave: () => ({ do: 'answer', tool_calls: [{ id: 'same', name: 'current_time', arguments: {} }] }),
    code: 'max_steps_reached',
    requests: Math.ceil(stepsMax / 2),
    config: { max_steps: stepsMax },
  },
]

/** Whether its tasks wait for no silent provider. */
export const isFast = ({ isLong, what }: ProviderCase): boolean => !isLong && !what.includes('30 s')
