import { timesOf } from '../../../format.ts'
import type { Step } from '../../../task-parts/types.ts'

/** Steps that begin so long before the one before ends still follow it: clocks of processes differ. */
const overlap_ms = 5

/**
 * The steps that decided when a task ended: from the one that ended last, each time to the one that ended last before it began. What
 * is not among them could have taken longer without a later end. Indexes of steps.
 */
export function criticalPath(steps: Iterable<Step>, now: number): Set<number> {
  const spans = [...steps].map((step) => {
    const [from, to] = timesOf(step, now)
    return { index: step.index, from, to }
  })
  const byEnd = spans.toSorted((a, b) => b.to - a.to || b.index - a.index)
  const path = new Set<number>()
  let current = byEnd[0]
  for (const span of byEnd) {
    if (!current) break
    if (path.size === 0) path.add(current.index)
    else if (span.index !== current.index && span.to <= current.from + overlap_ms && span.from < current.from) {
      path.add(span.index)
      current = span
    }
  }
  return path
}
