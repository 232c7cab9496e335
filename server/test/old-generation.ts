import { GCProfiler } from 'node:v8'

/** About 80 KB of objects. */
export function bulk(): object[] {
  return Array.from({ length: 2000 }, (_, n) => ({ n }))
}

/**
 * How many bytes collections of young objects moved to V8's old generation while `work` ran. Only in a process that has run nothing else: where other
 * tests ran before, V8 may have learned to place such objects there at once.
 */
export async function promotedBy(work: () => Promise<unknown>): Promise<number> {
  const profiler = new GCProfiler()
  profiler.start()
  await work()
  const { statistics } = profiler.stop()
  return statistics
    .filter(({ gcType }) => gcType === 'Scavenge')
    .reduce((sum, { beforeGC, afterGC }) => sum + oldBytes(afterGC) - oldBytes(beforeGC), 0)
}

function oldBytes({
  heapSpaceStatistics,
}: {
  heapSpaceStatistics: { spaceName: string; spaceUsedSize: number }[]
}): number {
  return heapSpaceStatistics.find(({ spaceName }) => spaceName === 'old_space')?.spaceUsedSize ?? 0
}
