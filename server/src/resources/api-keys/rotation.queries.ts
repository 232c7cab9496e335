import type { Sql } from '../../platform/postgres/database.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { columns, previewOf, withoutNulls, type ApiKeyRow, type KeyOwner } from './api-keys.queries.ts'

/**
 * Gives a key a new secret. The one until now works on for `overlap_seconds`, though not beyond the key's own end; the
 * one before that works no more. Undefined where the key is gone or has expired.
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

/** Rows that one statement changes, so that a sweep blocks no request for long. */
const sweepBatch = 1000

/** Forgets secrets whose time after a rotation is over, in batches; gives how many. */
export async function sweepPreviousSecrets(sql: Sql): Promise<number> {
  const rows = await sql`
    update api_key set previous_hash = null, previous_expires_at = null where id in (
      select id from api_key where previous_expires_at < now() limit ${sweepBatch} for update skip locked)
      and previous_expires_at < now()
    returning id`
  return rows.length
}
