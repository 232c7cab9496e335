/** An answer counts at least so long, and at most twice as long. */
const window_ms = 30_000

/**
 * The database's time as this process can tell it without asking, in milliseconds since 1970. It is right but for the time that the
 * quickest question took to reach the database, by which it is ahead. So a statement that is sent after it was read has a later time.
 * Clocks of machines differ; one that never goes back measures how long ago that question was asked.
 */
export class DatabaseClock {
  #ahead_ms = Infinity
  #before_ms = Infinity
  #since = -Infinity

  /** An answer has come that names the database's time; `asked_at` is when it was asked for, by the clock of `performance`. */
  note(time: string, asked_at: number): void {
    const now = performance.now()
    if (now - this.#since > window_ms) {
      this.#before_ms = now - this.#since > 2 * window_ms ? Infinity : this.#ahead_ms
      this.#ahead_ms = Infinity
      this.#since = now
    }
    this.#ahead_ms = Math.min(this.#ahead_ms, Date.parse(time) - asked_at)
  }

  /** Undefined where no answer came for a while. */
  read(): number | undefined {
    const now = performance.now()
    const ahead_ms = Math.min(this.#ahead_ms, this.#before_ms)
    if (ahead_ms === Infinity || now - this.#since > 2 * window_ms) return undefined
    return Math.floor(now + ahead_ms)
  }
}
