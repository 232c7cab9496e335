import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'

/** Label of the key that encrypts credentials; the credential's id is the associated data. */
export const credentialLabel = 'project-credential'

/**
 * The project's secrets of these names, decrypted. One that cannot be decrypted, because it was stored under
 * another secret key, counts as missing and is logged.
 */
export async function readCredentials(
  sql: Sql,
  secrets: Secrets,
  log: Logger,
  project_id: number,
  names: readonly string[],
): Promise<Map<string, string>> {
  const values = new Map<string, string>()
  if (names.length === 0) return values
  const rows = await sql<{ id: string; name: string; value: Buffer }>`
    select id, name, value from credential where project_id = ${project_id} and type = 'secret' and name = any(${[...new Set(names)]})`
  for (const { id, name, value } of rows) {
    try {
      values.set(name, secrets.decrypt(credentialLabel, value, id))
    } catch (error) {
      log.warn({ err: error, credential_id: id }, 'a credential of a project cannot be read')
    }
  }
  return values
}
