/** An answer counts at least so long, and at most twice as long. */
const window_ms = 30_000

/**
 * The database's time as this process can tell it without asking, in milliseconds since 1970: never later than it is, because an
 * answer that named a time came after that time. Clocks of machines differ; one that never goes back measures how long ago that was.
 */
export class DatabaseClock {
  #ahead_ms = -Infinity
  #before_ms = -Infinity
  #since = -Infinity

  /** An answer of the database has just come that names its time. */
  note(time: string): void {
    const now = performance.now()
    if (now - this.#since > window_ms) {
      this.#before_ms = now - this.#since > 2 * window_ms ? -Infinity : this.#ahead_ms
      this.#ahead_ms = -Infinity
      this.#since = now
    }
    this.#ahead_ms = Math.max(this.#ahead_ms, Date.parse(time) - now)
  }

  /** Undefined where no answer came for a while. */
  read(): number | undefined {
    const now = performance.now()
    const ahead_ms = Math.max(this.#ahead_ms, this.#before_ms)
    if (ahead_ms === -Infinity || now - this.#since > 2 * window_ms) return undefined
    return Math.floor(now + ahead_ms)
  }
}
