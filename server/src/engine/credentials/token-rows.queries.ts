import type { CredentialState } from '#contract/resources/credential-states.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import type { AllowedHosts } from './allowed-hosts.ts'
import type { OAuthSettings } from './oauth-settings.ts'

/** A credential of type `oauth2`, as renewals read it. Times are seconds from now by the database's clock. */
export interface TokenRow {
  credential_id: string
  project_id: number
  org_id: string
  name: string
  settings: OAuthSettings
  client_secret: Buffer | null
  status: CredentialState
  error: { code: string; message: string } | null
  tokens: Buffer | null
  generation: number
  rotates: boolean | null
  lease: string | null
  /** Until the access token expires; null without a token, or if its issuer does not say. */
  left_seconds: number | null
  /** Until its renewal is due; negative if overdue. */
  renew_in_seconds: number | null
  /** How long before its end the renewal is due. */
  early_seconds: number | null
  lease_left_seconds: number | null
  retry_in_seconds: number | null
  was_connected: boolean
  /** Whether servers refused its tokens so often that another renewal will not help. */
  is_refused_often: boolean
}

/** Identifies one generation of a credential's tokens. */
export interface TokensKey {
  credential_id: string
  generation: number
}

/** Tokens are renewed a fifth of their lifetime before they expire, but at most this long before. */
const early_seconds = 60

/**
 * Maximum renewals within the minutes below for tokens that servers refused before their end. A server that refuses all
 * tokens must not cause endless renewals.
 */
const refusalsMax = 5
const refusals_minutes = 10

export async function findTokenRow(sql: Sql, credential_id: string): Promise<TokenRow | undefined> {
  const [row] = await sql<TokenRow>`
    select o.credential_id, c.project_id, p.org_id, c.name, o.settings, o.client_secret, o.status, o.error, o.tokens, o.generation,
      o.rotates, o.lease, o.connected_at is not null as was_connected,
      extract(epoch from o.expires_at - now())::float8 as left_seconds,
      extract(epoch from o.renew_at - now())::float8 as renew_in_seconds,
      extract(epoch from o.expires_at - o.renew_at)::float8 as early_seconds,
      extract(epoch from o.leased_until - now())::float8 as lease_left_seconds,
      extract(epoch from o.retry_at - now())::float8 as retry_in_seconds,
      coalesce(o.refusals >= ${refusalsMax} and o.refusals_since > now() - make_interval(mins => ${refusals_minutes}), false)
        as is_refused_often
    from credential_oauth o join credential c on c.id = o.credential_id join project p on p.id = c.project_id
    where o.credential_id = ${credential_id}`
  return row
}

/** A credential with tokens, and where they may be sent. */
export interface TokenCredential {
  id: string
  allowed_hosts: AllowedHosts
}

/** The project's credentials with tokens among these names, by name. */
export async function listTokenCredentials(
  sql: Sql,
  project_id: number,
  names: readonly string[],
): Promise<Map<string, TokenCredential>> {
  if (names.length === 0) return new Map()
  const rows = await sql<TokenCredential & { name: string }>`
    select id, name, allowed_hosts from credential
    where project_id = ${project_id} and type = 'oauth2' and name = any(${[...new Set(names)]})`
  return new Map(rows.map(({ name, ...credential }) => [name, credential]))
}

/**
 * Takes the sole right to renew a generation of tokens for `seconds`, if no process has it. `seen` is the last holder
 * as read. `isRefused` counts the renewal as caused by a server's refusal. Returns the time of the lease, from which
 * the lifetime of the new tokens counts; undefined if another process was first.
 */
export async function takeLease(
  sql: Sql,
  { credential_id, generation }: TokensKey,
  { lease, seen, seconds, isRefused }: { lease: string; seen: string | null; seconds: number; isRefused: boolean },
): Promise<string | undefined> {
  const [row] = await sql<{ at: string }>`
    update credential_oauth set lease = ${lease}, leased_until = now() + make_interval(secs => ${seconds}),
      refusals = case when not ${isRefused}::boolean then refusals
        when refusals_since > now() - make_interval(mins => ${refusals_minutes}) then refusals + 1 else 1 end,
      refusals_since = case when ${isRefused}::boolean and coalesce(refusals_since <= now() - make_interval(mins => ${refusals_minutes}), true)
        then now() else refusals_since end
    where credential_id = ${credential_id} and generation = ${generation} and lease is not distinct from ${seen}
      and (lease is null or leased_until <= now()) and (retry_at is null or retry_at <= now())
    returning now() as at`
  return row?.at
}

/** New tokens. */
export interface NewTokens {
  tokens: Buffer
  /** Seconds from `at`; null if the issuer does not say. */
  expires_in: number | null
  /** When they were requested, by the database's clock. */
  at: string
  /** Whether the issuer replaced the refresh token; null if unknown. */
  rotates: boolean | null
}

/**
 * Replaces a generation of tokens by the next, even if another process has the lease by now: of two renewals, only the
 * first to write counts. Returns false if the generation was replaced before.
 */
export async function replaceTokens(
  sql: Sql,
  { credential_id, generation }: TokensKey,
  { tokens, expires_in, at, rotates }: NewTokens,
): Promise<boolean> {
  const rows = await sql`
    update credential_oauth set tokens = ${tokens}, generation = generation + 1, status = 'connected', error = null, lease = null,
      leased_until = null, failures = 0, retry_at = null, rotates = coalesce(${rotates}::boolean, rotates),
      expires_at = ${at}::timestamptz + make_interval(secs => ${expires_in}::float8),
      renew_at = ${at}::timestamptz + make_interval(secs => ${expires_in}::float8 - least(${early_seconds}::float8, ${expires_in}::float8 / 5)),
      connected_at = coalesce(connected_at, now())
    where credential_id = ${credential_id} and generation = ${generation} returning credential_id`
  return rows.length > 0
}

/** Records a failed renewal that may be repeated: after 1 s, then after twice as long each time, up to a minute. */
export async function postponeRenewal(
  sql: Sql,
  { credential_id, generation }: TokensKey,
  lease: string,
  error: { code: string; message: string },
): Promise<void> {
  await sql`
    update credential_oauth set lease = null, leased_until = null, status = 'failing', error = ${jsonb(error)}, failures = failures + 1,
      retry_at = now() + make_interval(secs => least(60, power(2, least(failures, 6))))
    where credential_id = ${credential_id} and generation = ${generation} and lease = ${lease}`
}

/** Records that no renewal can help. False if that was recorded before, or if the tokens were replaced meanwhile. */
export async function endRenewals(
  sql: Sql,
  { credential_id, generation }: TokensKey,
  { lease, status, error }: { lease: string | null; status: CredentialState; error: { code: string; message: string } },
): Promise<boolean> {
  const rows = await sql`
    update credential_oauth set lease = null, leased_until = null, retry_at = null, status = ${status}, error = ${jsonb(error)}
    where credential_id = ${credential_id} and generation = ${generation} and lease is not distinct from ${lease}
      and (status <> ${status} or retry_at is not null or lease is not null)
    returning credential_id`
  return rows.length > 0
}
