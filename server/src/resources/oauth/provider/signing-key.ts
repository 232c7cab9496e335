import { generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import type { Sql } from '../../../platform/postgres/database.ts'
import { secretLabels } from '../../../platform/crypto/secret-labels.ts'
import { WrongSecretKey, type Secrets } from '../../../platform/crypto/secrets.ts'

/** Name of the row, which is the associated data of its encryption. */
const name = secretLabels.signing_key

/**
 * The signing key of the authorization server (decision O5): created once, stored encrypted, and shared by all
 * processes. If two processes create one concurrently, both use the first one written. A key that was encrypted with
 * another secret key is replaced, because no client stores anything signed with it.
 */
export async function loadSigningKey(sql: Sql, secrets: Pick<Secrets, 'encrypt' | 'decrypt'>): Promise<JsonWebKey> {
  const stored = await findKey(sql)
  const known = stored && readable(secrets, stored)
  if (known) return known

  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const made = secrets.encrypt(name, JSON.stringify(privateKey.export({ format: 'jwk' })), name)
  await sql`
    insert into service_secret as s (name, value) values (${name}, ${made})
    on conflict (name) do update set value = excluded.value, created_at = now() where s.value = ${stored ?? null}`
  return read(secrets, (await findKey(sql)) ?? made)
}

/** The decrypted key; undefined if it was encrypted with another secret key. */
function readable(secrets: Pick<Secrets, 'decrypt'>, value: Buffer): JsonWebKey | undefined {
  try {
    return read(secrets, value)
  } catch (error) {
    if (error instanceof WrongSecretKey) return undefined
    throw error
  }
}

async function findKey(sql: Sql): Promise<Buffer | undefined> {
  const [row] = await sql<{ value: Buffer }>`select value from service_secret where name = ${name}`
  return row?.value
}

function read(secrets: Pick<Secrets, 'decrypt'>, value: Buffer): JsonWebKey {
  return JSON.parse(secrets.decrypt(name, value, name)) as JsonWebKey
}
