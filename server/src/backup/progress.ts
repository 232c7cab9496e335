import type { TableSize } from './archive-writer.ts'

/** Minimum interval of progress lines. */
const interval_ms = 5000

/**
 * Prints the progress of a backup or restore, one line every few seconds; nothing for a short one.
 */
export function makeProgress(
  what: string,
  note: (text: string) => void,
  now: () => number = () => performance.now(),
): (table: string, soFar: TableSize) => void {
  let said_at = now()
  return (table, { rows, bytes }) => {
    if (now() - said_at < interval_ms) return
    said_at = now()
    note(`${what} ${table}: ${count(rows)} rows, ${megabytes(bytes)}`)
  }
}

export function count(n: number): string {
  return n.toLocaleString('en-US')
}

export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`
}
