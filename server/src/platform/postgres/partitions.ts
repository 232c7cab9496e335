import { sqlState, type Sql } from './database.ts'

/** How long writers may have to wait behind what waits for its turn; it is tried again at the next sweep. */
const lockTimeout_ms = 100
const names = /^[a-z_]+_(\d{6}|\d{8})$/

/** Partitions of a table, the oldest first; their names end with the day or the month (UTC) that they are of. */
export async function listPartitions(sql: Sql, table: string): Promise<string[]> {
  const rows = await sql<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass order by name`
  return rows.map(({ name }) => name).filter((name) => names.test(name))
}

/**
 * Makes the partitions of the next `days`. Fails (`55P03`) where the tables are locked, as while a backup reads them:
 * writers would have to wait behind this.
 */
export async function ensurePartitions(sql: Sql, days: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx.script(`set local lock_timeout = ${lockTimeout_ms}`)
    await tx`select ensure_partitions(${days})`
  })
}

/**
 * Drops a partition where `mayGo` holds while writes are blocked, and returns whether it did. Writers wait only for a
 * moment: a table that is always busy is left for another time. The rows are removed at once, however many.
 */
export async function dropPartition(
  sql: Sql,
  { table, name }: { table: string; name: string },
  mayGo: (tx: Sql) => Promise<boolean> = async () => true,
): Promise<boolean> {
  if (!names.test(name) || !name.startsWith(`${table}_`)) throw new Error(`no partition: ${name} of ${table}`)
  try {
    return await sql.begin(async (tx) => {
      await tx.script(`set local lock_timeout = ${lockTimeout_ms}; lock table only ${table} in access exclusive mode`)
      if (!(await mayGo(tx))) return false
      await tx.script(`drop table ${name}`)
      return true
    })
  } catch (error) {
    // Not in this moment; or another process was first.
    if (['55P03', '40P01', '42P01'].includes(sqlState(error) ?? '')) return false
    throw error
  }
}
