import type { Sql } from '../../server/src/platform/postgres/database.ts'

/**
 * The schema of a database as SQL, read from PostgreSQL's own catalogs: extensions, types, sequences, functions, tables with their
 * columns and constraints, indexes, views and triggers of the schema `public`, each kind sorted by name. The same schema
 * gives the same text, whenever it was made: partitions and the table of migrations are left out.
 */
export async function readSchema(sql: Sql): Promise<string> {
  return sql.begin(async (tx) => {
    // Names of other schemas are written out, those of `public` are not.
    await tx`set local search_path to public`
    const readers = [
      extensions,
      types,
      sequences,
      functions,
      tables,
      functionsOfRows,
      foreignKeys,
      indexes,
      views,
      triggers,
    ]
    // A function may name a table that comes after it.
    const parts = ['set check_function_bodies to off;']
    for (const reader of readers) parts.push(...(await reader(tx)))
    return `${parts.join('\n\n')}\n`
  })
}

interface Line {
  line: string
}

const lines = (rows: Line[]): string[] => rows.map(({ line }) => line)

/** Extensions, and the schema that each has for itself. */
async function extensions(sql: Sql): Promise<string[]> {
  return lines(
    await sql<Line>`
      select format(E'create schema %I;\ncreate extension %I schema %I;', n.nspname, e.extname, n.nspname) as line
      from pg_extension e join pg_namespace n on n.oid = e.extnamespace
      where e.extname <> 'plpgsql' and n.nspname <> 'public'
      order by e.extname`,
  )
}

async function types(sql: Sql): Promise<string[]> {
  return lines(
    await sql<Line>`
      select case t.typtype
        when 'e' then format('create type %I as enum (%s);', t.typname,
          (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid))
        else format('create domain %I as %s%s%s%s;', t.typname, format_type(t.typbasetype, t.typtypmod),
          case when t.typcollation <> b.typcollation then format(' collate %I', c.collname) else '' end,
          case when t.typnotnull then ' not null' else '' end,
          coalesce((select string_agg(' ' || pg_get_constraintdef(k.oid), '' order by k.conname)
            from pg_constraint k where k.contypid = t.oid and k.contype = 'c'), ''))
        end as line
      from pg_type t
      left join pg_type b on b.oid = t.typbasetype
      left join pg_collation c on c.oid = t.typcollation
      where t.typnamespace = 'public'::regnamespace and t.typtype in ('e', 'd')
      order by t.typname collate "C"`,
  )
}

/** Sequences of identity columns belong to their column and are listed there. */
async function sequences(sql: Sql): Promise<string[]> {
  return lines(
    await sql<Line>`
      select format('create sequence %I as %s start %s increment %s;', c.relname, format_type(s.seqtypid, null), s.seqstart, s.seqincrement) as line
      from pg_class c
      join pg_sequence s on s.seqrelid = c.oid
      where c.relnamespace = 'public'::regnamespace
        and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i' and d.refobjsubid > 0)
      order by c.relname collate "C"`,
  )
}

/** Functions that tables may use. */
function functions(sql: Sql): Promise<string[]> {
  return functionsWhere(sql, false)
}

/** Functions that take or give rows of tables. */
function functionsOfRows(sql: Sql): Promise<string[]> {
  return functionsWhere(sql, true)
}

async function functionsWhere(sql: Sql, areOfRows: boolean): Promise<string[]> {
  const rows = await sql<Line>`
    select pg_get_functiondef(p.oid) as line
    from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.prokind in ('f', 'p')
      and ${areOfRows} = exists (select from pg_type t where t.typtype = 'c' and t.oid = any(p.proargtypes::oid[] || p.prorettype))
    -- As they were made: one that another one needs comes before it.
    order by p.oid`
  return lines(rows).map((text) => `${text.trimEnd()};`)
}

async function tables(sql: Sql): Promise<string[]> {
  const rows = await sql<{ oid: number; head: string; tail: string }>`
    select c.oid::int8 as oid,
      format('create %stable %I', case when c.relpersistence = 'u' then 'unlogged ' else '' end, c.relname) as head,
      coalesce(' partition by ' || pg_get_partkeydef(c.oid), '')
        || coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', '') as tail
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> 'schema_migration'
    order by c.relname collate "C"`
  const texts: string[] = []
  for (const { oid, head, tail } of rows) {
    const members = [...(await columns(sql, oid)), ...(await constraints(sql, oid))]
    texts.push(`${head} (\n${members.map((member) => `  ${member}`).join(',\n')}\n)${tail};`)
  }
  return texts
}

async function columns(sql: Sql, table: number): Promise<string[]> {
  return lines(
    await sql<Line>`
      select format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod))
        || case when a.attcollation <> t.typcollation then format(' collate %I', c.collname) else '' end
        || case when a.attnotnull then ' not null' else '' end
        || case a.attidentity when 'a' then ' generated always as identity' when 'd' then ' generated by default as identity' else '' end
        || case a.attgenerated
          when 's' then format(' generated always as (%s) stored', pg_get_expr(d.adbin, d.adrelid))
          when 'v' then format(' generated always as (%s)', pg_get_expr(d.adbin, d.adrelid))
          else coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') end as line
      from pg_attribute a
      join pg_type t on t.oid = a.atttypid
      left join pg_collation c on c.oid = a.attcollation
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where a.attrelid = ${table} and a.attnum > 0 and not a.attisdropped
      order by a.attnum`,
  )
}

async function constraints(sql: Sql, table: number): Promise<string[]> {
  return lines(
    await sql<Line>`
      select format('constraint %I %s', conname, pg_get_constraintdef(oid, true)) as line
      from pg_constraint
      where conrelid = ${table} and contype in ('p', 'u', 'x', 'c')
      order by position(contype::text in 'puxc'), conname collate "C"`,
  )
}

/** After all tables, so that the text as a whole can be run. */
async function foreignKeys(sql: Sql): Promise<string[]> {
  const rows = await sql<Line>`
    select format('alter table %I add constraint %I %s;', c.relname, k.conname, pg_get_constraintdef(k.oid, true)) as line
    from pg_constraint k
    join pg_class c on c.oid = k.conrelid
    where c.relnamespace = 'public'::regnamespace and k.contype = 'f' and k.conparentid = 0 and not c.relispartition
    order by c.relname collate "C", k.conname collate "C"`
  return rows.length > 0 ? [lines(rows).join('\n')] : []
}

async function indexes(sql: Sql): Promise<string[]> {
  const rows = await sql<Line>`
    select replace(pg_get_indexdef(i.indexrelid, 0, true), ' ON ONLY ', ' ON ') || ';' as line
    from pg_index i
    join pg_class c on c.oid = i.indrelid
    join pg_class n on n.oid = i.indexrelid
    where c.relnamespace = 'public'::regnamespace and not c.relispartition and c.relkind in ('r', 'p', 'm')
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid and k.contype in ('p', 'u', 'x'))
    order by c.relname collate "C", n.relname collate "C"`
  return rows.length > 0 ? [lines(rows).join('\n')] : []
}

async function views(sql: Sql): Promise<string[]> {
  const rows = await sql<Line>`
    select format(E'create %sview %I as\n%s', case when relkind = 'm' then 'materialized ' else '' end, relname, pg_get_viewdef(oid, true)) as line
    from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('v', 'm')
    order by relname collate "C"`
  return lines(rows)
}

async function triggers(sql: Sql): Promise<string[]> {
  const rows = await sql<Line>`
    select pg_get_triggerdef(t.oid, true) || ';' as line
    from pg_trigger t
    join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = 'public'::regnamespace and not t.tgisinternal and not c.relispartition
    order by c.relname collate "C", t.tgname collate "C"`
  return rows.length > 0 ? [lines(rows).join('\n')] : []
}
