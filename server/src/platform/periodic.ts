/** Work that repeats in the background. */
export interface PeriodicJob {
  /** Runs the work now; once more after the run that is under way. */
  now(): void
  /** Runs the work no more; resolves when the run under way has ended. */
  stop(): Promise<void>
}

export interface PeriodicOptions {
  /** Milliseconds between the starts of two runs; a run that takes longer delays the next one. */
  every_ms: number
  /** Milliseconds before the first run; `every_ms` where nothing is said. */
  first_ms?: number
  /** Called with the error of a run that failed, which is repeated in `every_ms`; not after `stop`. */
  onError(error: unknown): void
}

/** Repeats `work`, never two runs at a time. Keeps no process alive. */
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
      // Of either kind.
      clearTimeout(timer)
      await current
    },
  }
}
