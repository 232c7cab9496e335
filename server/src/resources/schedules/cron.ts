import { Cron } from 'croner'

/**
 * Five fields, with `L`, `W`, `#` and names, or a nickname. `?` is not taken: the library puts the current time in its
 * place, and a schedule must mean the same whenever it is read.
 */
const patterns =
  /^(?:@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)|[0-9A-Za-z*,/#+-]+(?: [0-9A-Za-z*,/#+-]+){4})$/i

/** A cron pattern or a time zone that means nothing; the message ends the sentence "cron …". */
export class CronError extends Error {
  readonly field: 'cron' | 'time_zone'
  constructor(field: 'cron' | 'time_zone', message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CronFault'
    this.field = field
  }
}

/** A pattern in its one form: fields with one space between. */
export function cleanCron(cron: string): string {
  return cron.trim().replaceAll(/\s+/g, ' ')
}

/**
 * Due times of a pattern in a time zone. All of it is a pure function of its arguments.
 *
 * Where clocks change, a time that is named (`30 2 * * *`, `0 2,14 * * *`) comes once: at the first moment after the gap
 * where it is skipped, and at the first of two where it comes twice. A pattern with a star or a step in its minutes or
 * hours follows real time: nothing falls into the gap, and everything into both hours. Throws `CronError`.
 */
export class DueTimes {
  readonly #cron: Cron

  constructor(cron: string, time_zone: string) {
    if (!isTimeZone(time_zone)) throw new CronError('time_zone', 'is not the name of a time zone')
    if (!patterns.test(cron)) throw new CronError('cron', 'must have five fields, or be a word such as @daily')
    try {
      this.#cron = new Cron(cron, { timezone: time_zone, mode: '5-part', fixedTimeRule: 'no-wildcard', paused: true })
    } catch (error) {
      const message = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
      throw new CronError('cron', `cannot be understood: ${message}`, error)
    }
  }

  /** The first due time after a moment, not at it; null where there is none any more. */
  after(timestamp: Date): Date | null {
    return this.#cron.nextRun(timestamp)
  }

  /** The last due time until a moment, or at it; null where there was none. */
  until(timestamp: Date): Date | null {
    // The library looks strictly before a whole second.
    const [last] = this.#cron.previousRuns(1, new Date((Math.floor(timestamp.getTime() / 1000) + 1) * 1000))
    return last ?? null
  }
}

/** Whether a name stands in the time zone database. Offsets such as `+02:00` do not: they know no summer time. */
function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
