import { availableParallelism, cpus, loadavg } from 'node:os'

/** The least, the middle and the most of measured values. */
export interface Summary {
  min: number
  median: number
  max: number
}

/** Sums up at least one value; of an even number the median is the mean of the two in the middle. */
export function summarize(values: readonly number[]): Summary {
  const sorted = values.toSorted((one, other) => one - other)
  const at = (index: number): number => sorted[index] ?? Number.NaN
  const middle = (sorted.length - 1) / 2
  return { min: at(0), median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2, max: at(sorted.length - 1) }
}

/** The value below which `share` (0 to 1) of at least one value lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

/** A line of a Markdown table in whole milliseconds. */
export function row(name: string, { min, median, max }: Summary): string {
  return `| ${[name, min, median, max].map((cell) => (typeof cell === 'number' ? Math.round(cell) : cell)).join(' | ')} |`
}

/** What a figure depends on: processor, Node, and how busy the machine was in the last minute. */
export function machine(): string {
  const model = cpus()[0]?.model ?? 'unknown processor'
  return `${availableParallelism()} cores (${model}), Node ${process.version}, load ${load().toFixed(2)}`
}

/** Processes that ran or wanted to, on average over the last minute. */
export function load(): number {
  return loadavg()[0] ?? 0
}
