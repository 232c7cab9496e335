import { isObject } from '#contract/core/merge-patch.ts'
import { createContext, Script, type Context } from 'node:vm'

const script = new Script('work()')
let context: (Context & { work?: () => void }) | undefined

/** What took longer than it may. */
export class TookTooLong extends Error {}

/** The wall clock may run this many times longer than the bound, where others have the processor meanwhile. */
const timeoutMultiplier = 10

/**
 * Runs synchronous work for at most `timeout_ms` of this thread's processor time, then V8 ends it wherever it is, inside
 * a regular expression too. The event loop stands still meanwhile, so the bound is short. Throws `TookTooLong`, and what
 * the work throws. Work that was ended because the machine was busy with others begins anew, so it may be run more than
 * once.
 *
 * The script is only the frame that V8 guards; what runs is our own function with data of others. It is no sandbox.
 */
export function runBounded<T>(work: () => T, timeout_ms: number): T {
  for (let wall_ms = timeout_ms; ; wall_ms *= 2) {
    const before_ms = processor_ms()
    try {
      return runOnce(work, wall_ms)
    } catch (error) {
      const used_ms = processor_ms() - before_ms
      if (!(error instanceof TookTooLong) || used_ms >= timeout_ms / 2 || wall_ms >= timeout_ms * timeoutMultiplier)
        throw error
    }
  }
}

function processor_ms(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

function runOnce<T>(work: () => T, timeout_ms: number): T {
  context ??= createContext({})
  let outcome: { value: T } | undefined
  let failure: { error: unknown } | undefined
  context.work = () => {
    try {
      outcome = { value: work() }
    } catch (error) {
      failure = { error }
    }
  }
  try {
    script.runInContext(context, { timeout: timeout_ms })
  } catch (error) {
    // Of the guarded context's own realm, so no instance of our `Error`.
    if (isObject(error) && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      throw new TookTooLong(`took longer than ${timeout_ms} ms`)
    throw error
  } finally {
    delete context.work
  }
  if (failure) throw failure.error
  return outcome!.value
}
