import type { TableSize } from './archive-writer.ts'

/** So often something is said of a table that takes long. */
const interval_ms = 5000

/**
 * Says how far a backup is: a line every few seconds, so that short ones say nothing and a log of long ones stays short.
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
