import type { Bus } from '../../events/streams/streams-bus.ts'
import { ModelError } from './model.ts'
import { nameOfKey } from './organization/call-key.ts'

/**
 * Cooldowns that providers asked for. One refused call informs all others: calls of the same model wait until the
 * cooldown ends instead of being refused as well. Other processes are notified; a lost notification costs one refused
 * call.
 * After a cooldown the waiting calls do not start together. In each process one goes first. The others follow once an
 * answer has begun, or one a second while none has (decision 0019).
 */
export interface Cooldown {
  /** The moment (ms since 1970) until which `provider/model` is not to be asked; undefined where it may be. */
  until(provider_model: string): number | undefined
  /** Asks to call `provider/model` now. Permission is taken when it is granted: the caller then makes the call. */
  enter(provider_model: string): { mayAsk: true } | CooldownWait
  /**
   * `provider/model` answered that it is to be asked again after so many seconds. A later moment replaces an earlier
   * one, never the other way round. The built-in test models are left out: their errors are each script's own.
   */
  note(provider_model: string, retry_after_seconds: number, code?: BusyCode): void
  /** `provider/model` began to answer, or failed otherwise than by a 429 or 503: no call is the first one any more. */
  answered(provider_model: string): void
}

/** Why a model is not to be asked now. */
interface CooldownWait {
  mayAsk: false
  /** Milliseconds until it is worth asking for leave again. */
  left_ms: number
  /** The moment that the provider named last, in ms since 1970: another one than before means one more refusal. */
  asked_until: number
  /** What the call fails of that is not made: as those that were refused, to be tried again when the time is over. */
  refusal: ModelError
}

/** What providers that ask for patience answer: 429 or 503. */
type BusyCode = 'provider_rate_limited' | 'provider_unavailable'

/** How long the first call goes alone while neither an answer nor a refusal comes: a model may think for minutes. */
const lead_ms = 1000

/** After this long one call is made despite the cooldown: a key may have been replaced or a quota raised. */
const cooldownMax_ms = 3_600_000
/** Models that are remembered; one more pushes out the one that was noted first. */
const entriesMax = 1000

/** Without a bus the knowledge stays in this process. `now` gives ms since 1970. */
export function makeCooldown({
  bus,
  now = Date.now,
}: {
  bus?: Pick<Bus, 'notify' | 'on'>
  now?: () => number
}): Cooldown {
  const rests = new Map<string, Rest>()

  /** Whether it was news. */
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
      // One that was under way when another was refused knows nothing newer.
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
  /** When it is to be asked again, in ms since 1970. */
  asked_until: number
  /** Until when the first call goes alone; 0 while there is none. */
  lead_until: number
  code: BusyCode
}

function refusal(provider_model: string, { code }: Rest, left_ms: number): ModelError {
  return new ModelError(code, `${nameOfKey(provider_model)} was not asked: it has just asked another call to wait.`, {
    retryable: true,
    retry_after: left_ms / 1000,
  })
}

/** `provider/model@ms`, in ASCII, as ids of signals are; with a `!` behind it where it was unavailable (503). */
function writeSignal(provider_model: string, timestamp: number, code: BusyCode): string {
  const mark = code === 'provider_unavailable' ? '!' : ''
  return `${encodeURIComponent(provider_model.toWellFormed())}@${timestamp}${mark}`
}

/** Undefined for an invalid signal: any client of the database may send one. */
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
