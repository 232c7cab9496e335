/** Work that repeats in the background. */
export interface PeriodicJob {
  /** Runs the work now, or once more after the current run. */
  now(): void
  /** Stops the repetition; resolves when the current run has ended. */
  stop(): Promise<void>
}

export interface PeriodicOptions {
  /** Milliseconds between the starts of two runs; a run that takes longer skips the starts that it misses. */
  every_ms: number
  /** Milliseconds before the first run; defaults to `every_ms`. */
  first_ms?: number
  /** Called with the error of a failed run, but not after `stop`; the next run is at the next start. */
  onError(error: unknown): void
}

/** Repeats `work`, one run at a time. The timer does not keep the process alive. */
export function startPeriodic(work: () => Promise<unknown>, options: PeriodicOptions): PeriodicJob {
  const { every_ms, first_ms = every_ms, onError } = options
  let current: Promise<void> | undefined
  let isWanted = false
  let isStopped = false

  const run = async (): Promise<void> => {
    do {
      isWanted = false
      try {
        await work()
      } catch (error) {
        if (!isStopped) onError(error)
        return
      }
    } while (isWanted && !isStopped)
  }
  const tick = (): void => {
    if (!isStopped) current ??= run().finally(() => (current = undefined))
  }
  let timer = setTimeout(() => {
    timer = setInterval(tick, every_ms).unref()
    tick()
  }, first_ms).unref()

  return {
    now() {
      isWanted = true
      tick()
    },
    async stop() {
      isStopped = true
      // Also stops an interval.
      clearTimeout(timer)
      await current
    },
  }
}
