import { hashOf } from '../../platform/crypto/hash-of.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** Maximum number of rows per statement, so that a sweep does not block requests for long. */
const sweepBatch = 1000
/** Maximum number of open authorizations per credential; the oldest are dropped. */
const underwayMax = 20

/** An open authorization at an issuer. */
export interface Authorization {
  credential_id: string
  user_id: string
  /** The encrypted PKCE verifier. */
  verifier: Buffer
}

/** Stores an authorization with the hash of its `state`. Returns when it expires. */
export async function insertAuthorization(
  tx: Sql,
  state: string,
  { credential_id, user_id, verifier }: Authorization,
  seconds: number,
): Promise<string> {
  await tx`
    delete from credential_authorization where state_hash in (
      select state_hash from credential_authorization where credential_id = ${credential_id}
      order by expires_at desc offset ${underwayMax - 1})`
  const [row] = await tx<{ expires_at: string }>`
    insert into credential_authorization (state_hash, credential_id, user_id, verifier, expires_at)
    values (${hashOf(state)}, ${credential_id}, ${user_id}, ${verifier}, now() + make_interval(secs => ${seconds}))
    returning expires_at`
  return row!.expires_at
}

/** Uses up an authorization of the user. Undefined if it belongs to another user, was used, or has expired. */
export async function takeAuthorization(sql: Sql, state: string, user_id: string): Promise<Authorization | undefined> {
  const [row] = await sql<Authorization>`
    delete from credential_authorization
    where state_hash = ${hashOf(state)} and user_id = ${user_id} and expires_at > now()
    returning credential_id, user_id, verifier`
  return row
}

/** User, organization and project of a state, for the audit log. */
export async function findAuthorization(
  sql: Sql,
  state: string,
): Promise<{ credential_id: string; user_id: string; org_id: string; project_id: number } | undefined> {
  const [row] = await sql<{ credential_id: string; user_id: string; org_id: string; project_id: number }>`
    select a.credential_id, a.user_id, p.org_id, c.project_id
    from credential_authorization a join credential c on c.id = a.credential_id join project p on p.id = c.project_id
    where a.state_hash = ${hashOf(state)} and a.expires_at > now()`
  return row
}

/** Ends the open authorizations of a credential, because its client or scopes have changed. */
export async function dropAuthorizations(tx: Sql, credential_id: string): Promise<void> {
  await tx`delete from credential_authorization where credential_id = ${credential_id}`
}

/** Removes expired authorizations. */
export async function sweepAuthorizations(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from credential_authorization where state_hash in (
      select state_hash from credential_authorization where expires_at < now() limit ${sweepBatch}) returning state_hash`
  return deleted.length
}
