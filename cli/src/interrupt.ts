import { exitCodes } from '#contract/core/exit-codes.ts'
import { Interrupted } from './failure.ts'

type Signal = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** The handlers of a signal; the newest is called. */
const handlers = new Map<Signal, (() => void)[]>()

/**
 * Calls `handler` when the process gets `signal`, in place of earlier handlers; returns a function that removes it. A signal
 * without any handler left ends the process with exit code 130.
 */
export function onSignal(signal: Signal, handler: () => void): () => void {
  let all = handlers.get(signal)
  if (!all) {
    handlers.set(signal, (all = []))
    process.on(signal, () => (handlers.get(signal)?.at(-1) ?? exitInterrupted)())
  }
  all.push(handler)
  return () => void all.splice(all.lastIndexOf(handler), 1)
}

/** Ends the process at once, as Ctrl-C does. */
export function exitInterrupted(): never {
  process.exit(exitCodes.interrupted)
}

/**
 * Runs `work` until Ctrl-C: then `signal` is aborted, and `Interrupted` is thrown once `work` has cleaned up. A second
 * Ctrl-C ends the process at once.
 */
export async function untilInterrupted<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController()
  const remove = onSignal('SIGINT', () => (stop.signal.aborted ? exitInterrupted() : stop.abort(new Interrupted())))
  try {
    return await work(stop.signal)
  } catch (error) {
    if (stop.signal.aborted) throw new Interrupted()
    throw error
  } finally {
    remove()
  }
}
