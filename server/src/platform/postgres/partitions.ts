import { sqlState, type Sql } from './database.ts'

/** Writers queue behind a change of partitions that waits for its lock, so it waits briefly; the next sweep tries again. */
const lockTimeout_ms = 100
const names = /^[a-z_]+_(\d{6}|\d{8})$/

/** Names of a table's partitions, oldest first; they end with the day or the month in UTC. */
export async function listPartitions(sql: Sql, table: string): Promise<string[]> {
  const rows = await sql<{ name: string }>`
    select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = ${table}::regclass order by name`
  return rows.map(({ name }) => name).filter((name) => names.test(name))
}

/**
 * Makes the partitions of the next `days`. Fails with `55P03` if the tables are locked, for example by a backup, because
 * writers would wait behind it.
 */
export async function ensurePartitions(sql: Sql, days: number): Promise<void> {
  await sql.begin(async (tx) => {
    await tx.script(`set local lock_timeout = ${lockTimeout_ms}`)
    await tx`select ensure_partitions(${days})`
  })
}

/**
 * Drops a partition if `mayGo` allows it while writes are blocked; returns whether it did. Writers wait at most 100 ms plus
 * the duration of `mayGo`: a busy table is left for the next sweep. Dropping is fast for any number of rows.
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
    // The table is locked, or another process has dropped the partition.
    if (['55P03', '40P01', '42P01'].includes(sqlState(error) ?? '')) return false
    throw error
  }
}
