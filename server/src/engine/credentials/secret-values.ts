import type { AllowedHosts } from './allowed-hosts.ts'
import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** A decrypted value, and where it may be sent. */
export interface CredentialValue {
  value: string
  allowed_hosts: AllowedHosts
}

/**
 * Decrypts the project's secrets with these names. Also returns, and logs, the names of those that were encrypted with
 * another secret key.
 */
export async function readCredentials(
  sql: Sql,
  secrets: Secrets,
  log: Logger,
  project_id: number,
  names: readonly string[],
): Promise<{ values: Map<string, CredentialValue>; unreadable: string[] }> {
  const values = new Map<string, CredentialValue>()
  const unreadable: string[] = []
  if (names.length === 0) return { values, unreadable }
  const rows = await sql<{ id: string; name: string; value: Buffer; allowed_hosts: AllowedHosts }>`
    select id, name, value, allowed_hosts from credential where project_id = ${project_id} and type = 'secret' and name = any(${[...new Set(names)]})`
  for (const { id, name, value, allowed_hosts } of rows) {
    try {
      values.set(name, { value: secrets.decrypt(secretLabels.credential, value, id), allowed_hosts })
    } catch (error) {
      unreadable.push(name)
      log.warn({ err: error, credential_id: id }, 'a credential could not be decrypted; tasks that need it fail')
    }
  }
  return { values, unreadable }
}
