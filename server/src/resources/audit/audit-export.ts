import type { Sql } from '../../platform/postgres/database.ts'
import { listAuditEntriesAfter, type AuditFilter } from './audit.queries.ts'

/** Entries that are read, and wait in memory, at a time: each is at most some 50 KiB. */
const batch = 200
/** How long a reader that does not read is waited for. */
const stall_ms = 30_000

/** Where an export ends, and what happens where it cannot go on. */
export interface ExportOptions {
  /** The identifier of the last entry: what is written meanwhile is the next export's. */
  last: string
  /** The reader has not read for half a minute. */
  onStall: () => void
}

/**
 * All entries that match as lines of JSON, the oldest first, as fast as they are read and no faster. Between two batches
 * neither a transaction nor a connection is held. An entry whose transaction ends while an export is past it is left out.
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
