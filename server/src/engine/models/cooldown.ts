import type { Bus } from '../../events/streams-bus.ts'

/**
 * When providers asked to be left alone. What one call learns, all of them know: whoever is about to ask the same model
 * waits until then instead of being refused once more. Other processes are told; a hint that gets lost costs one
 * refused call.
 */
export interface Cooldown {
  /** The moment (ms since 1970) until which `provider/model` is not to be asked; undefined where it may be. */
  until(provider_model: string): number | undefined
  /**
   * `provider/model` answered that it is to be asked again after so many seconds. A later moment replaces an earlier
   * one, never the other way round. The built-in test models are left out: their errors are each script's own.
   */
  note(provider_model: string, retry_after_seconds: number): void
}

/** After so long somebody asks again whatever was said: a key may have been replaced, a quota raised. */
const cooldownMax_ms = 3_600_000
/** Models that are remembered; one more pushes out the one that was noted first. */
const entriesMax = 1000

/** Without a bus the knowledge stays in this process. `now` gives ms since 1970. */
export function makeCooldown({
  bus,
  now = Date.now,
}: {
  bus?: Pick<Bus, 'tell' | 'on'>
  now?: () => number
}): Cooldown {
  const moments = new Map<string, number>()

  const until = (provider_model: string): number | undefined => {
    const moment = moments.get(provider_model)
    if (moment === undefined || moment > now()) return moment
    moments.delete(provider_model)
    return undefined
  }
  /** Whether it was news. */
  const keep = (provider_model: string, moment: number): boolean => {
    const bounded = Math.min(moment, now() + cooldownMax_ms)
    if (!(bounded > now()) || bounded <= (until(provider_model) ?? 0)) return false
    moments.delete(provider_model)
    moments.set(provider_model, bounded)
    const [oldest] = moments.keys()
    if (moments.size > entriesMax && oldest !== undefined) moments.delete(oldest)
    return true
  }

  bus?.on('cooldown', (id, origin) => {
    const told = origin === 'elsewhere' ? readSignal(id) : undefined
    if (told) keep(told.provider_model, told.moment)
  })
  return {
    until,
    note(provider_model, retry_after_seconds) {
      if (provider_model.startsWith('builtin/')) return
      const moment = Math.ceil(now() + Math.min(retry_after_seconds * 1000, cooldownMax_ms))
      if (keep(provider_model, moment)) bus?.tell('cooldown', writeSignal(provider_model, moment))
    },
  }
}

/** `provider/model@ms`, in ASCII, as ids of signals are. */
function writeSignal(provider_model: string, moment: number): string {
  return `${encodeURIComponent(provider_model.toWellFormed())}@${moment}`
}

/** Undefined for what is no such signal: anybody on the same database may send one. */
function readSignal(id: unknown): { provider_model: string; moment: number } | undefined {
  const [, name, moment] = /^([^@]{1,2000})@(\d{1,15})$/.exec(String(id)) ?? []
  if (name === undefined) return undefined
  try {
    return { provider_model: decodeURIComponent(name), moment: Number(moment) }
  } catch {
    return undefined
  }
}
