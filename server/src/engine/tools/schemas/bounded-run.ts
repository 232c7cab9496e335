import { isObject } from '#contract/core/merge-patch.ts'
import { createContext, Script, type Context } from 'node:vm'

const script = new Script('work()')
let context: (Context & { work?: () => void }) | undefined

/** Work exceeded its time. */
export class TookTooLong extends Error {}

/** Maximum wall-clock time as a multiple of the bound, for a machine that is busy with other work. */
const timeoutMultiplier = 10

/**
 * Runs synchronous work for at most `timeout_ms` of this thread's CPU time. Then V8 interrupts it anywhere, even inside
 * a regular expression. The event loop is blocked meanwhile, so the bound must be short. Work that was interrupted
 * because the machine was busy is started again, so it may run more than once.
 *
 * The script is only the frame that V8 interrupts; the work is Cadre's code with data of others. It is not a sandbox.
 * @throws TookTooLong, and errors of the work
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
    // From the realm of the context, so not an instance of this realm's `Error`.
    if (isObject(error) && error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT')
      throw new TookTooLong(`took longer than ${timeout_ms} ms`)
    throw error
  } finally {
    delete context.work
  }
  if (failure) throw failure.error
  return outcome!.value
}
