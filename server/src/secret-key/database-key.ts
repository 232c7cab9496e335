import type { Logger } from 'pino'
import { WrongSecretKeyAtStart, type Secrets } from '../platform/crypto/secrets.ts'
import type { Sql } from '../platform/postgres/database.ts'

/**
 * Ids of the secret keys of a database. `next` is set during a rotation, once a process that encrypts with it has started;
 * both keys are then needed to read everything.
 */
export interface DatabaseKeys {
  current: string
  next: string | undefined
}

const currentName = 'key_id'
const nextName = 'next_key_id'

/** The keys of a database; undefined if no service has started on it yet. */
export async function findDatabaseKeys(sql: Sql): Promise<DatabaseKeys | undefined> {
  const rows = await sql<{ name: string; value: Buffer }>`
    select name, value from service_secret where name in (${currentName}, ${nextName})`
  const of = (name: string) => rows.find((row) => row.name === name)?.value.toString()
  const current = of(currentName)
  return current === undefined ? undefined : { current, next: of(nextName) }
}

/**
 * Compares the keys of a process with those of the database. A process that encrypts with another key starts a rotation. If
 * the operator acknowledged that the database's key is lost (`isLost`), this key becomes the database's, and secrets of the
 * lost key stay unreadable until they are set again.
 * @throws WrongSecretKeyAtStart if the process cannot read everything
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
      'the secret key of this database was replaced because of CADRE_SECRET_KEY_LOST; stored secrets are unreadable until they are set again',
    )
    return
  }
  if (current !== key_id && next !== key_id)
    await sql`insert into service_secret (name, value) values (${nextName}, ${Buffer.from(key_id)}) on conflict (name) do nothing`
  if (current !== key_id || next !== undefined)
    log.warn(
      { key_id, database_key_id: current },
      'the secret key of this database is being replaced; run `cadre secret-key rotate` to encrypt stored secrets with the new one',
    )
}

/** Records that everything in the database is encrypted with this key, which ends a rotation. */
export async function setDatabaseKey(sql: Sql, key_id: string): Promise<void> {
  await sql.begin(async (tx) => {
    await tx`
      insert into service_secret (name, value) values (${currentName}, ${Buffer.from(key_id)})
      on conflict (name) do update set value = excluded.value`
    await tx`delete from service_secret where name = ${nextName}`
  })
}
