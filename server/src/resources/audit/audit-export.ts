import type { Sql } from '../../platform/postgres/database.ts'
import { listAuditEntriesAfter, type AuditFilter } from './audit.queries.ts'

/** Number of entries that are read and held in memory at a time; each has up to about 50 KiB. */
const batch = 200
/** How long the export waits for a reader that does not read. */
const stall_ms = 30_000

/** Options of an export. */
export interface ExportOptions {
  /** Id of the last entry. Later entries are not part of the export. */
  last: string
  /** Called if the reader has not read for half a minute. */
  onStall: () => void
}

/**
 * Streams all matching entries as lines of JSON, oldest first, with back pressure. Between batches it holds neither a
 * transaction nor a connection. An entry whose transaction commits after the export has passed its position is
 * omitted.
 */
export async function* exportLines(
  sql: Sql,
  filter: AuditFilter,
  { last, onStall }: ExportOptions,
): AsyncGenerator<string> {
  let after = ''
  for (;;) {
    const entries = await listAuditEntriesAfter(sql, filter, { after, last, limit: batch })
    const [end] = entries.slice(-1)
    if (!end) return
    const stalled = setTimeout(onStall, stall_ms).unref()
    try {
      yield entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
    } finally {
      clearTimeout(stalled)
    }
    if (entries.length < batch) return
    after = end.id
  }
}
