import type { Sql } from '../platform/postgres/database.ts'
import type { Manifest } from './manifest.ts'
import { columnsLeftOut, useOf } from './table-uses.ts'

/** Everything that a manifest has of a snapshot, without rows. */
export type SnapshotContent = Pick<
  Manifest,
  'created_at' | 'postgresql_version' | 'key_id' | 'migrations' | 'partitions' | 'sequences' | 'tables'
>

/** Names of the tables in a backup; a partitioned table counts once. */
export async function listStoredTables(sql: Sql): Promise<string[]> {
  const rows = await sql<{ name: string }>`
    select c.relname as name from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
    order by c.relname`
  return rows.map(({ name }) => name).filter((name) => useOf(name).is === 'kept')
}

/** Reads the content of a manifest in the snapshot of the caller's transaction. */
export async function readSnapshotContent(tx: Sql): Promise<SnapshotContent> {
  const [now] = await tx<{ created_at: string; postgresql_version: string; key_id: Buffer | null }>`
    select now() as created_at, current_setting('server_version') as postgresql_version,
      (select value from service_secret where name = 'key_id') as key_id`
  const migrations = await tx<{ version: number; name: string; hash: string }>`
    select version, name, hash from schema_migration order by version`
  const names = await listStoredTables(tx)
  return {
    created_at: now!.created_at,
    postgresql_version: now!.postgresql_version,
    key_id: now!.key_id?.toString() ?? null,
    migrations,
    partitions: await listPartitionBounds(tx, names),
    sequences: await listSequences(tx, names),
    tables: await listColumns(tx, inOrder(names, await listReferences(tx))),
  }
}

/** Lists the columns in a backup, without generated ones. */
async function listColumns(tx: Sql, names: readonly string[]): Promise<Manifest['tables']> {
  const rows = await tx<{ name: string; columns: string[] }>`
    select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
    from pg_class c join pg_attribute a on a.attrelid = c.oid
    where c.relnamespace = current_schema()::regnamespace and c.relname = any(${[...names]})
      and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    group by c.relname`
  const columns = new Map(rows.map((row) => [row.name, row.columns]))
  return names.map((name) => {
    const without = columnsLeftOut(name)
    return { name, columns: (columns.get(name) ?? []).filter((column) => !without.includes(column)) }
  })
}

async function listPartitionBounds(tx: Sql, names: readonly string[]): Promise<Manifest['partitions']> {
  const rows = await tx<{ table: string; name: string; bounds: string }>`
    select p.relname as table, c.relname as name, pg_get_expr(c.relpartbound, c.oid) as bounds
    from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
    where p.relnamespace = current_schema()::regnamespace and p.relkind = 'p' and p.relname = any(${[...names]})
    order by p.relname, c.relname`
  return rows.map(({ table, name, bounds }) => {
    const [, from, to] = /^FOR VALUES FROM \('([^']+)'\) TO \('([^']+)'\)$/.exec(bounds) ?? []
    if (from === undefined || to === undefined) throw new Error(`partition ${name} has no bounds of time: ${bounds}`)
    return { table, name, from, to }
  })
}

async function listSequences(tx: Sql, names: readonly string[]): Promise<Manifest['sequences']> {
  return tx<{ table: string; column: string; last_value: number }>`
    select * from (
      select c.relname as table, a.attname as column,
        pg_sequence_last_value(pg_get_serial_sequence(quote_ident(c.relname), a.attname)::regclass) as last_value
      from pg_class c join pg_attribute a on a.attrelid = c.oid
      where c.relnamespace = current_schema()::regnamespace and c.relname = any(${[...names]})
        and a.attnum > 0 and a.attidentity <> ''
    ) identity where last_value is not null order by 1, 2`
}

/** Foreign keys between tables. */
async function listReferences(tx: Sql): Promise<{ from: string; to: string }[]> {
  return tx`
    select distinct c.relname as from, f.relname as to
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_class f on f.oid = k.confrelid
    where k.contype = 'f' and c.relnamespace = current_schema()::regnamespace and k.conparentid = 0 and c.oid <> f.oid`
}

/** Sorts tables so that each comes after those that it references. */
export function inOrder(names: readonly string[], references: readonly { from: string; to: string }[]): string[] {
  const left = new Set(names)
  const sorted: string[] = []
  while (left.size > 0) {
    const free = [...left].filter((name) => !references.some(({ from, to }) => from === name && left.has(to)))
    if (free.length === 0) throw new Error(`tables refer to each other in a circle: ${[...left].join(', ')}`)
    for (const name of free) left.delete(name)
    sorted.push(...free)
  }
  return sorted
}
