import { readFile } from 'node:fs/promises'
import { setTimeout as wait } from 'node:timers/promises'

/** How much of its processors a machine may lack, of 1, to count as its own. */
const stolenMax = 0.15
const sample_ms = 5_000

/**
 * Resolves once this machine has its processors to itself: one that is virtual loses them to others at times, for
 * minutes. Gives up after `max_ms`. Resolves at once where the system does not tell.
 */
export async function untilCalm(max_ms: number): Promise<void> {
  const end_ms = performance.now() + max_ms
  let before = await processorTime()
  while (before && performance.now() < end_ms) {
    await wait(sample_ms)
    const now = await processorTime()
    if (!now || now.stolen - before.stolen <= stolenMax * (now.all - before.all)) return
    before = now
  }
}

/** What `/proc/stat` says of all processors since the start of the machine, in its own unit. */
async function processorTime(): Promise<{ all: number; stolen: number } | undefined> {
  const text = await readFile('/proc/stat', 'utf8').catch(() => undefined)
  const times = text?.split('\n')[0]?.split(/\s+/).slice(1, 9).map(Number)
  if (times?.length !== 8) return undefined
  return { all: times.reduce((sum, time) => sum + time, 0), stolen: times[7]! }
}
