import { Interrupted } from './failure.ts'

/**
 * Runs `work` until Ctrl-C: then `signal` is aborted, and `Interrupted` is thrown once `work` has cleaned up. A second
 * Ctrl-C waits for nothing.
 */
export async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const onInterrupt = (): void => {
    if (stop.signal.aborted) process.exit(new Interrupted().exit)
    stop.abort(new Interrupted())
  }
  process.on('SIGINT', onInterrupt)
  try {
    return await work(stop.signal)
  } catch (error) {
    if (stop.signal.aborted) throw new Interrupted()
    throw error
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}
