import type { Bus } from '../../events/streams/streams-bus.ts'
import { ModelError } from './model.ts'
import { nameOfKey } from './organization/call-key.ts'

/**
 * Cooldowns that providers asked for (decision 0019). One refused call informs all others: calls of the same model wait
 * for the end of the cooldown instead of being refused as well. Other processes are notified; a lost notification costs
 * one refused call.
 *
 * After a cooldown, the waiting calls do not start at once. In each process one goes first. The others follow once an
 * answer has begun, or one per second until then.
 */
export interface Cooldown {
  /** The end of the cooldown of `provider/model` in ms since 1970; undefined without one. */
  until(provider_model: string): number | undefined
  /** Requests permission to call `provider/model` now. The caller must then make the call. */
  enter(provider_model: string): { mayAsk: true } | CooldownWait
  /**
   * Records that `provider/model` asked for a cooldown of this many seconds. A later end replaces an earlier one, never
   * the other way round. The built-in models are excluded, because their errors belong to each script.
   */
  note(provider_model: string, retry_after_seconds: number, code?: BusyCode): void
  /** `provider/model` began to answer, or failed with another error than 429 or 503: other calls may follow. */
  answered(provider_model: string): void
}

/** Why a model must not be called now. */
interface CooldownWait {
  mayAsk: false
  /** Milliseconds until another request for permission is useful. */
  left_ms: number
  /** The end of the cooldown that the provider asked for last, in ms since 1970. A change means another refusal. */
  asked_until: number
  /** The error for a call that is not made, like that of the refused calls, to retry after the cooldown. */
  refusal: ModelError
}

/** The error codes of a provider that asks for a cooldown: 429 or 503. */
type BusyCode = 'provider_rate_limited' | 'provider_unavailable'

/** How long the first call goes alone without an answer or a refusal, because a model may think for minutes. */
const lead_ms = 1000

/** After this long, one call is made despite the cooldown: a key may have been replaced or a quota raised. */
const cooldownMax_ms = 3_600_000
/** Maximum number of models; the oldest cooldown is removed first. */
const entriesMax = 1000

/** Without a bus, cooldowns are known to this process only. `now` returns ms since 1970. */
export function makeCooldown({
  bus,
  now = Date.now,
}: {
  bus?: Pick<Bus, 'notify' | 'on'>
  now?: () => number
}): Cooldown {
  const rests = new Map<string, Rest>()

  /** Stores a cooldown. Returns whether it is new or longer. */
  const keep = (provider_model: string, asked_until: number, code: BusyCode): boolean => {
    const bounded = Math.min(asked_until, now() + cooldownMax_ms)
    if (!(bounded > now()) || bounded <= (rests.get(provider_model)?.asked_until ?? 0)) return false
    rests.delete(provider_model)
    rests.set(provider_model, { asked_until: bounded, lead_until: 0, code })
    const [oldest] = rests.keys()
    if (rests.size > entriesMax && oldest !== undefined) rests.delete(oldest)
    return true
  }

  bus?.on('cooldown', (id, origin) => {
    const asked_until = origin === 'elsewhere' ? readSignal(id) : undefined
    if (asked_until) keep(asked_until.provider_model, asked_until.timestamp, asked_until.code)
  })
  return {
    until(provider_model) {
      const asked_until = rests.get(provider_model)?.asked_until
      return asked_until !== undefined && asked_until > now() ? asked_until : undefined
    },
    enter(provider_model) {
      const rest = rests.get(provider_model)
      if (!rest) return { mayAsk: true }
      const left_ms = Math.max(rest.asked_until, rest.lead_until) - now()
      if (left_ms > 0)
        return {
          mayAsk: false,
          left_ms,
          asked_until: rest.asked_until,
          refusal: refusal(provider_model, rest, left_ms),
        }
      rest.lead_until = now() + lead_ms
      return { mayAsk: true }
    },
    answered(provider_model) {
      // A call that started before the cooldown says nothing about its end.
      if ((rests.get(provider_model)?.asked_until ?? Infinity) <= now()) rests.delete(provider_model)
    },
    note(provider_model, retry_after_seconds, code = 'provider_rate_limited') {
      if (provider_model.startsWith('builtin/')) return
      const timestamp = Math.ceil(now() + Math.min(retry_after_seconds * 1000, cooldownMax_ms))
      if (keep(provider_model, timestamp, code)) bus?.notify('cooldown', writeSignal(provider_model, timestamp, code))
    },
  }
}

interface Rest {
  /** End of the cooldown, in ms since 1970. */
  asked_until: number
  /** Until when the first call goes alone; 0 before it. */
  lead_until: number
  code: BusyCode
}

function refusal(provider_model: string, { code }: Rest, left_ms: number): ModelError {
  return new ModelError(code, `${nameOfKey(provider_model)} was not called: it asked for a pause just now.`, {
    retryable: true,
    retry_after: left_ms / 1000,
  })
}

/** `provider/model@ms` in ASCII, because it is the id of a signal; followed by `!` for a 503. */
function writeSignal(provider_model: string, timestamp: number, code: BusyCode): string {
  const mark = code === 'provider_unavailable' ? '!' : ''
  return `${encodeURIComponent(provider_model.toWellFormed())}@${timestamp}${mark}`
}

/** Undefined for an invalid signal, because any client of the database may send one. */
function readSignal(id: unknown): { provider_model: string; timestamp: number; code: BusyCode } | undefined {
  const [, name, timestamp, mark] = /^([^@]{1,2000})@(\d{1,15})(!?)$/.exec(String(id)) ?? []
  if (name === undefined) return undefined
  const code = mark === '!' ? 'provider_unavailable' : 'provider_rate_limited'
  try {
    return { provider_model: decodeURIComponent(name), timestamp: Number(timestamp), code }
  } catch {
    return undefined
  }
}
