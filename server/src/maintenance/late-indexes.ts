import { Client } from 'pg'
import type { Context } from '../context.ts'
import type { Sql } from '../platform/postgres/database.ts'

/** Building the index of a large table may take hours, and blocks nothing. */
const build_ms = 6 * 3_600_000

/**
 * Builds an index that a migration postponed because its table was large (`build_index` in SQL): concurrently with writes,
 * over a dedicated connection, by one process at a time. An index that a crash left invalid is dropped and built again.
 */
export async function buildLateIndexes(sql: Sql, { database }: Pick<Context, 'database'>): Promise<boolean> {
  const [late] = await sql<{ name: string; statement: string }>`
    select name, statement from index_to_build order by name limit 1`
  if (!late) return false
  const client = new Client({ ...database.settings, query_timeout: build_ms })
  // The running statement reports an error of the connection.
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(`set statement_timeout = ${build_ms}; set lock_timeout = 0`)
    const { rows } = await client.query<{ mine: boolean }>(
      `select pg_try_advisory_lock(hashtext('cadre late indexes')) as mine`,
    )
    if (!rows[0]!.mine) return false
    const { rowCount } = await client.query(
      `select from pg_index where indexrelid = to_regclass(quote_ident($1)) and not indisvalid`,
      [late.name],
    )
    if (rowCount) await client.query(`drop index concurrently ${client.escapeIdentifier(late.name)}`)
    await client.query(late.statement)
    await client.query('delete from index_to_build where name = $1', [late.name])
    return true
  } finally {
    await client.end()
  }
}
