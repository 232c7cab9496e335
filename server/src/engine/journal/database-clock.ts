/** A measurement of the offset counts for at least this long, and at most twice as long. */
const window_ms = 30_000

/**
 * Estimates the database's time without a query, in milliseconds since 1970. The estimate is ahead by at most the time
 * that the fastest recent query took to reach the database. So a statement that is sent after a read runs at a later
 * time than the one read. The clocks of machines differ, so a monotonic clock measures the time since that query.
 */
export class DatabaseClock {
  #ahead_ms = Infinity
  #before_ms = Infinity
  #since = -Infinity

  /** Records the database's time from a response; `asked_at` is when the query was sent, by `performance.now()`. */
  note(time: string, asked_at: number): void {
    const now = performance.now()
    if (now - this.#since > window_ms) {
      this.#before_ms = now - this.#since > 2 * window_ms ? Infinity : this.#ahead_ms
      this.#ahead_ms = Infinity
      this.#since = now
    }
    this.#ahead_ms = Math.min(this.#ahead_ms, Date.parse(time) - asked_at)
  }

  /** The estimated time; undefined if no response came for a while. */
  read(): number | undefined {
    const now = performance.now()
    const ahead_ms = Math.min(this.#ahead_ms, this.#before_ms)
    if (ahead_ms === Infinity || now - this.#since > 2 * window_ms) return undefined
    return Math.floor(now + ahead_ms)
  }
}
