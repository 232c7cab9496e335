import type { Operation } from './history.ts'

/**
 * Whether reads and writes of registers are linearizable, each register for itself (Wing and Gong's search): there is one
 * order of all of them, in which each happened between its request and its answer, and each read gives what was written last.
 * `read` operations have what they read as their value, `write` operations what they wrote, no value twice by intention.
 * Gives what is wrong; meant for some hundred operations a register.
 */
export function checkRegisters(operations: readonly Operation[], initial: unknown): string[] {
  return [...Map.groupBy(operations, ({ key }) => key)].flatMap(([key, own]) =>
    isLinearizable(own, initial)
      ? []
      : [`${key} is not linearizable: ${own.length} operations, of which ${story(own, initial)}`],
  )
}

interface Step {
  isRead: boolean
  value: unknown
  from: number
  /** Infinite where the outcome is unknown: then it may take effect at any later time, or never. */
  to: number
}

/** States of one register that are looked at; more would be a search without an end. */
const statesMax = 100_000

function isLinearizable(operations: readonly Operation[], initial: unknown): boolean {
  const read = new Set(operations.filter(isKnownRead).map(({ value }) => value))
  const steps = operations
    .filter((operation) => (operation.op === 'read' ? isKnownRead(operation) : operation.outcome !== 'fail'))
    // An unknown write that was never read changes no result.
    .filter(({ outcome, value }) => outcome === 'ok' || read.has(value))
    .map(({ op, value, outcome, t_invoke, t_return }): Step => {
      return { isRead: op === 'read', value, from: t_invoke, to: outcome === 'ok' ? t_return : Infinity }
    })
    .toSorted((one, other) => one.from - other.from)
  const tried = new Set<string>()
  const search = (done: bigint, value: unknown): boolean => {
    for (;;) {
      const left = steps.flatMap((step, index) =>
        done & (1n << BigInt(index)) ? [] : [{ step, bit: 1n << BigInt(index) }],
      )
      const end = Math.min(...left.map(({ step }) => step.to))
      if (end === Infinity) return true
      const next = left.filter(({ step }) => step.from <= end)
      // A read of what is there can only be too late, never too early.
      const seen = next.find(({ step }) => step.isRead && step.value === value)
      if (seen) {
        done |= seen.bit
        continue
      }
      // What was written over is never read again, unless it is written again.
      const isLeft = (isRead: boolean, of: unknown): boolean =>
        left.some(({ step }) => step.isRead === isRead && step.value === of)
      if (isLeft(true, value) && !isLeft(false, value)) return false
      // A write that was never read may as well have happened now.
      const unread = isLeft(true, value) ? undefined : next.find(({ step }) => !step.isRead && !read.has(step.value))
      if (unread) {
        done |= unread.bit
        value = unread.step.value
        continue
      }
      const state = `${done} ${String(value)}`
      if (tried.has(state)) return false
      tried.add(state)
      if (tried.size > statesMax) throw new Error(`the order of ${steps.length} operations is not found in time`)
      return next.some(({ step, bit }) => !step.isRead && search(done | bit, step.value))
    }
  }
  return search(0n, initial)
}

function isKnownRead({ op, outcome }: Operation): boolean {
  return op === 'read' && outcome === 'ok'
}

/** The first read that cannot be explained by what was written before its end, else the last one. */
function story(operations: readonly Operation[], initial: unknown): string {
  const reads = operations.filter(isKnownRead)
  const odd =
    reads.find(
      ({ value, t_return }) =>
        value !== initial &&
        !operations.some((one) => one.op === 'write' && one.value === value && one.t_invoke < t_return),
    ) ?? reads.at(-1)
  return odd ? `one read ${String(odd.value)} at ${Math.round(odd.t_return)} ms` : 'none is a read'
}
