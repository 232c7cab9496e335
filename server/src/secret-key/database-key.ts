import type { Logger } from 'pino'
import { WrongSecretKeyAtStart, type Secrets } from '../platform/crypto/secrets.ts'
import type { Sql } from '../platform/postgres/database.ts'

/**
 * Ids of the secret keys that the secrets of a database are encrypted with. `next` is there while the key is replaced: a process that
 * encrypts with it has started. Both are then needed to read everything.
 */
export interface DatabaseKeys {
  current: string
  next: string | undefined
}

const currentName = 'key_id'
const nextName = 'next_key_id'

/** The keys of a database; undefined where no service has started on it. */
export async function findDatabaseKeys(sql: Sql): Promise<DatabaseKeys | undefined> {
  const rows = await sql<{ name: string; value: Buffer }>`
    select name, value from service_secret where name in (${currentName}, ${nextName})`
  const of = (name: string) => rows.find((row) => row.name === name)?.value.toString()
  const current = of(currentName)
  return current === undefined ? undefined : { current, next: of(nextName) }
}

/**
 * Compares the keys of a process with those of the database. Throws `WrongSecretKeyAtStart` where the process cannot read everything,
 * unless the operator says that the other key is lost: then this key is the database's from now on, and what was encrypted with
 * another one stays unreadable until it is set again. A process that encrypts with another key than the database's begins a rotation.
 */
export async function compareSecretKey(
  sql: Sql,
  { key_id, reads }: Secrets,
  { isLost, log }: { isLost: boolean; log: Logger },
): Promise<void> {
  await sql`insert into service_secret (name, value) values (${currentName}, ${Buffer.from(key_id)}) on conflict (name) do nothing`
  const { current, next } = (await findDatabaseKeys(sql))!
  const lost = [current, next].find((id) => id !== undefined && !reads(id))
  if (lost !== undefined) {
    if (!isLost) throw new WrongSecretKeyAtStart(lost, key_id)
    await setDatabaseKey(sql, key_id)
    log.error(
      { key_id, lost_key_id: lost },
      'The secret key of this database was replaced, as CADRE_SECRET_KEY_LOST says; stored secrets are unreadable until they are set again',
    )
    return
  }
  if (current !== key_id && next !== key_id)
    await sql`insert into service_secret (name, value) values (${nextName}, ${Buffer.from(key_id)}) on conflict (name) do nothing`
  if (current !== key_id || next !== undefined)
    log.warn(
      { key_id, database_key_id: current },
      'The secret key of this database is being replaced; `cadre secret-key rotate` encrypts with the new one what is stored',
    )
}

/** From now on everything in the database is encrypted with the key of this id. */
export async function setDatabaseKey(sql: Sql, key_id: string): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`
      insert into service_secret (name, value) values (${currentName}, ${Buffer.from(key_id)})
      on conflict (name) do update set value = excluded.value`
    await tx`delete from service_secret where name = ${nextName}`
  })
}
