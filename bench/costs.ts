import { readFile, readdir } from 'node:fs/promises'
import pg from 'pg'
import type { EmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'

/** What work has cost so far: milliseconds of processor, and statements by what they cost PostgreSQL. */
export interface Costs {
  node_ms: number
  /** Of all processes of the server; 0 where there is no `/proc`. */
  postgres_ms: number
  statements: Map<string, Statement>
}

/** Of the figures only those of time depend on the machine and on how busy it is. */
interface Statement {
  text: string
  calls: number
  ms: number
  /** Pages that it touched. */
  pages: number
  wal_bytes: number
}

/** Needed for `readCosts`, as settings of the server. */
export const costSettings = {
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track_planning': 'on',
}

const clockTick_ms = 10
const shownMax = 16

/** Reads what this process has cost so far, or another one, and the server. */
export async function readCosts({ connection, pid }: EmbeddedPostgres, other?: number): Promise<Costs> {
  // As the superuser of the cluster: the service's own role may neither make extensions nor see others' statements.
  const client = new pg.Client({ ...connection, user: 'postgres' })
  await client.connect()
  await client.query('create extension if not exists pg_stat_statements')
  const { rows } = await client.query<Statement & { queryid: string }>(`
    select queryid::text, query as text, calls::int, total_exec_time + total_plan_time as ms,
      (shared_blks_hit + shared_blks_read)::float as pages, wal_bytes::float
    from pg_stat_statements`)
  await client.end()
  const { user, system } = process.cpuUsage()
  return {
    node_ms: other === undefined ? (user + system) / 1000 : await processorTime((of) => of.pid === other),
    postgres_ms: await processorTime((of) => of.pid === pid || of.parent === pid),
    statements: new Map(rows.map(({ queryid, ...statement }) => [queryid, statement])),
  }
}

/** The work between two readings, for each of `count` pieces of it: a table of the dearest statements below two lines. */
export function costsBetween(before: Costs, after: Costs, count: number): string {
  const none: Statement = { text: '', calls: 0, ms: 0, pages: 0, wal_bytes: 0 }
  const spent = [...after.statements].map(([id, { text, calls, ms, pages, wal_bytes }]): Statement => {
    const past = before.statements.get(id) ?? none
    return {
      text: text.replaceAll(/[\s|]+/g, ' ').slice(0, 100),
      calls: (calls - past.calls) / count,
      ms: (ms - past.ms) / count,
      pages: (pages - past.pages) / count,
      wal_bytes: (wal_bytes - past.wal_bytes) / count,
    }
  })
  const sum = (figure: 'calls' | 'ms' | 'pages' | 'wal_bytes'): number =>
    spent.reduce((all, statement) => all + statement[figure], 0)
  const all = { text: 'All', calls: sum('calls'), ms: sum('ms'), pages: sum('pages'), wal_bytes: sum('wal_bytes') }
  const lines = [all, ...spent.toSorted((one, other) => other.ms - one.ms).filter(({ calls }) => calls > 0.005)]
    .slice(0, shownMax)
    .map(({ text, calls, ms, pages, wal_bytes }) =>
      [`| ${ms.toFixed(3)}`, calls.toFixed(2), pages.toFixed(1), Math.round(wal_bytes), `${text} |`].join(' | '),
    )
  const processor = [after.node_ms - before.node_ms, after.postgres_ms - before.postgres_ms]
    .map((ms) => (ms / count).toFixed(2))
    .join(' ms Node, ')
  return `Processor: ${processor} ms PostgreSQL.

| ms | calls | pages | WAL bytes | statement |
|---|---|---|---|---|
${lines.join('\n')}`
}

/** Milliseconds of processor time of the processes that `isMeant`; 0 where there is no `/proc`. */
async function processorTime(isMeant: (process: { pid: number; parent: number }) => boolean): Promise<number> {
  const pids = await readdir('/proc').catch(() => [])
  const stats = await Promise.all(
    pids.filter((pid) => /^\d+$/.test(pid)).map((pid) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')),
  )
  return stats.reduce((sum, stat) => {
    // The name in parentheses may have spaces; the fields behind it begin with the state and the parent.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (!isMeant({ pid: Number.parseInt(stat, 10), parent: Number(fields[1]) })) return sum
    const [user, system] = fields.slice(11, 13).map(Number)
    return sum + (user! + system!) * clockTick_ms
  }, 0)
}
