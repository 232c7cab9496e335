import { DamagedSecret, type Secrets } from '../platform/crypto/secrets.ts'
import { raw, type Fragment, type Sql } from '../platform/postgres/database.ts'
import { encryptedColumns, type EncryptedColumn } from './encrypted-columns.ts'

/** Values read at a time. Each may be as long as a response of the API or a model's turn. */
const batchMax = 100

/** Number of values of a column that are encrypted with a key. */
export interface KeyUse {
  /** `table.column`. */
  what: string
  key_id: string
  values: number
}

/** The result of a rotation for a column. */
export interface ColumnRotation {
  what: string
  encrypted: number
  /** Values that no key of this process decrypts, or that are damaged; they stay unchanged. */
  unreadable: number
}

interface Row extends Record<string, unknown> {
  aad: string
  key_id: string | null
  /** Null if the value has the key of the rotation. */
  value: Buffer | null
}

/** Counts the values of every encrypted column by key, in batches, until `signal` aborts. */
export async function findKeyUses(sql: Sql, signal: AbortSignal): Promise<KeyUse[]> {
  const uses: KeyUse[] = []
  for (const column of encryptedColumns) {
    const counts = new Map<string, number>()
    for await (const rows of batches(sql, column, undefined, signal))
      for (const { key_id } of rows) if (key_id !== null) counts.set(key_id, (counts.get(key_id) ?? 0) + 1)
    for (const [key_id, values] of counts) uses.push({ what: nameOf(column), key_id, values })
  }
  return uses
}

/**
 * Encrypts with the key of `secrets` all values of another key that it can read, while services run: a value that a service
 * changes meanwhile stays as the service wrote it. An interrupted call keeps its progress, and the next one does the rest.
 * Repeats until a pass finds nothing to do, and returns the result of that pass.
 */
export async function reencryptAll(
  sql: Sql,
  secrets: Secrets,
  { onColumn, signal }: { onColumn: (column: ColumnRotation) => void; signal: AbortSignal },
): Promise<ColumnRotation[]> {
  for (;;) {
    const columns: ColumnRotation[] = []
    for (const column of encryptedColumns) {
      const done = await reencrypt(sql, secrets, column, signal)
      columns.push(done)
      onColumn(done)
    }
    if (columns.every(({ encrypted }) => encrypted === 0)) return columns
  }
}

async function reencrypt(
  sql: Sql,
  secrets: Secrets,
  column: EncryptedColumn,
  signal: AbortSignal,
): Promise<ColumnRotation> {
  const done: ColumnRotation = { what: nameOf(column), encrypted: 0, unreadable: 0 }
  for await (const rows of batches(sql, column, secrets.key_id, signal)) {
    const changes: { row: Row; value: Buffer }[] = []
    for (const row of rows) {
      if (row.value === null) continue
      const text = secrets.reads(row.key_id!) ? readable(secrets, column, row.value, row.aad) : undefined
      if (text === undefined) done.unreadable++
      else changes.push({ row, value: secrets.encrypt(column.label, text, row.aad) })
    }
    if (changes.length > 0) done.encrypted += await replace(sql, column, changes)
  }
  return done
}

/** Decrypts a value; undefined if it is damaged or belongs to another row. */
function readable(secrets: Secrets, { label }: EncryptedColumn, value: Buffer, aad: string): string | undefined {
  try {
    return secrets.decrypt(label, value, aad)
  } catch (error) {
    if (error instanceof DamagedSecret) return undefined
    throw error
  }
}

/** The rows of a column's table in the order of its primary key; with the value if it has another key than `key_id`. */
async function* batches(
  sql: Sql,
  { table, column, aad, key, where = 'true' }: EncryptedColumn,
  key_id: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Row[]> {
  const names = Object.keys(key)
  const columns = raw(names.join(', '))
  const value = raw(column)
  const foreign =
    key_id === undefined
      ? sql.fragment`null::bytea`
      : sql.fragment`case when ${value} <> '' and substring(${value} from 2 for 4) <> ${Buffer.from(key_id, 'hex')} then ${value} end`
  let after: Fragment = sql.fragment`true`
  for (;;) {
    signal.throwIfAborted()
    const rows = await sql.run<Row>(sql.fragment`
      select ${columns}, ${raw(aad)} as aad, ${foreign} as value,
        encode(substring(nullif(${value}, '') from 2 for 4), 'hex') as key_id
      from ${raw(table)} where ${raw(where)} and ${after} order by ${columns} limit ${batchMax}`)
    yield rows
    if (rows.length < batchMax) return
    const last = rows.at(-1)!
    const [first, second] = names.map((name) => last[name])
    after =
      names.length === 1 ? sql.fragment`${columns} > ${first}` : sql.fragment`(${columns}) > (${first}, ${second})`
  }
}

/** Writes values whose row still has the value that was read; returns their number. */
async function replace(
  sql: Sql,
  { table, column, key }: EncryptedColumn,
  changes: readonly { row: Row; value: Buffer }[],
): Promise<number> {
  const names = Object.entries(key)
  const keys = names.map(([name, type]) => sql.fragment`${changes.map(({ row }) => row[name])}::${raw(type)}[]`)
  const value = raw(column)
  const keyArrays = keys.length === 1 ? keys[0]! : sql.fragment`${keys[0]!}, ${keys[1]!}`
  const written = await sql.run(sql.fragment`
    update ${raw(table)} as t set ${value} = n.written_value
    from unnest(${keyArrays}, ${changes.map(({ row }) => row.value)}::bytea[], ${changes.map((one) => one.value)}::bytea[])
      as n(${raw(names.map(([name]) => name).join(', '))}, read_value, written_value)
    where ${raw(names.map(([name]) => `t.${name} = n.${name}`).join(' and '))} and t.${value} = n.read_value
    returning 1`)
  return written.length
}

function nameOf({ table, column }: EncryptedColumn): string {
  return `${table}.${column}`
}
