import pg from 'pg'
import type { Environment } from '../environment.ts'

/**
 * What is damaged in the database, as PostgreSQL itself sees it: every page of every table is read, whose checksum has to be
 * right, and every index has to have what its table has (`amcheck`). Gives what is wrong.
 */
export async function checkPages({ postgres }: Pick<Environment, 'postgres'>): Promise<string[]> {
  const client = new pg.Client({ ...postgres.connection, user: 'postgres' })
  await client.connect()
  try {
    await client.query('create extension if not exists amcheck')
    const { rows } = await client.query<{ table: string; index: string | null }>(`
      select c.oid::regclass::text as table, i.indexrelid::regclass::text as index
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
        left join (pg_index i join pg_class x on x.oid = i.indexrelid and x.relkind = 'i'
          join pg_am a on a.oid = x.relam and a.amname = 'btree') on i.indrelid = c.oid and i.indisvalid
      where c.relkind in ('r', 't', 'm') and n.nspname not in ('information_schema')`)
    const wrong: string[] = []
    const check = async (what: string, text: string, values: string[]): Promise<void> => {
      const faults = await client.query(text, values).then(
        (found) => found.rows as { msg?: string }[],
        (error: Error) => [{ msg: error.message }],
      )
      wrong.push(...faults.flatMap(({ msg }) => (msg === undefined ? [] : [`${what}: ${msg}`])))
    }
    for (const table of new Set(rows.map((row) => row.table)))
      await check(table, 'select msg from verify_heapam($1::regclass)', [table])
    for (const { index } of rows) if (index) await check(index, 'select bt_index_check($1::regclass, true)', [index])
    return wrong
  } finally {
    await client.end()
  }
}
