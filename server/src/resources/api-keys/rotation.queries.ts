import type { Sql } from '../../platform/postgres/database.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { columns, previewOf, withoutNulls, type ApiKeyRow, type KeyOwner } from './api-keys.queries.ts'

/**
 * Sets a new secret. The previous secret works for `overlap_seconds`, but not beyond the expiry of the key; older
 * ones stop working. Undefined if the key does not exist or has expired.
 */
export async function rotateApiKey(
  tx: Sql,
  owner: KeyOwner,
  id: string,
  key: string,
  overlap_seconds: number,
): Promise<ApiKeyRow | undefined> {
  const [row] = await tx.run<ApiKeyRow>(tx.fragment`
    update api_key k set hash = ${hashOf(key)}, preview = ${previewOf(key)},
      previous_hash = case when ${overlap_seconds}::int > 0 then hash end,
      previous_expires_at = case when ${overlap_seconds}::int > 0
        then least(now() + make_interval(secs => ${overlap_seconds}::int), expires_at) end,
      updated_at = greatest(now(), coalesce(updated_at, created_at) + interval '1 millisecond')
    where id = ${id} and user_id = ${owner.user_id} and org_id = ${owner.org_id} and revoked_at is null
      and (expires_at is null or expires_at > now())
    returning ${columns(tx)}`)
  return row && withoutNulls(row)
}

/** Maximum number of rows per statement, so that a sweep does not block requests for long. */
const sweepBatch = 1000

/** Removes previous secrets whose overlap has ended, in batches; returns their number. */
export async function sweepPreviousSecrets(sql: Sql): Promise<number> {
  const rows = await sql`
    update api_key set previous_hash = null, previous_expires_at = null where id in (
      select id from api_key where previous_expires_at < now() limit ${sweepBatch} for update skip locked)
      and previous_expires_at < now()
    returning id`
  return rows.length
}
