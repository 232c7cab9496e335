import { Cron } from 'croner'
import { isTimeZone } from '#contract/core/timestamps.ts'

/**
 * Five fields with `L`, `W`, `#` and names, or a nickname. `?` is not allowed, because the library replaces it by the
 * current time, and a schedule must not depend on when it is read.
 */
const patterns =
  /^(?:@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)|[0-9A-Za-z*,/#+-]+(?: [0-9A-Za-z*,/#+-]+){4})$/i

/** An invalid cron expression or time zone. The message continues the name of the field. */
export class CronError extends Error {
  readonly field: 'cron' | 'time_zone'
  constructor(field: 'cron' | 'time_zone', message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'CronFault'
    this.field = field
  }
}

/** Normalizes an expression: fields separated by one space. */
export function cleanCron(cron: string): string {
  return cron.trim().replaceAll(/\s+/g, ' ')
}

/**
 * Due times of a cron expression in a time zone. Pure functions.
 *
 * When clocks change, a fixed time (`30 2 * * *`, `0 2,14 * * *`) is due once: right after the gap if it is skipped, and
 * the first time if it occurs twice. An expression with a star or a step in minutes or hours follows real time: it is
 * not due in the gap, and due in both repeated hours. Throws `CronError`.
 */
export class DueTimes {
  readonly #cron: Cron

  constructor(cron: string, time_zone: string) {
    if (!isTimeZone(time_zone)) throw new CronError('time_zone', 'is not a known IANA time zone')
    if (!patterns.test(cron)) throw new CronError('cron', 'must have five fields, or be a nickname such as @daily')
    try {
      this.#cron = new Cron(cron, { timezone: time_zone, mode: '5-part', fixedTimeRule: 'no-wildcard', paused: true })
    } catch (error) {
      const message = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
      throw new CronError('cron', `is not valid: ${message}`, error)
    }
  }

  /** The first due time strictly after a time; null if there is none. */
  after(timestamp: Date): Date | null {
    return this.#cron.nextRun(timestamp)
  }

  /** The last due time at or before a time; null if there is none. */
  until(timestamp: Date): Date | null {
    // The library searches strictly before a whole second.
    const [last] = this.#cron.previousRuns(1, new Date((Math.floor(timestamp.getTime() / 1000) + 1) * 1000))
    return last ?? null
  }
}
