import { SecretUnreadable } from './secret-unreadable.ts'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { projectId } from '#contract/core/project-id.ts'
import type { CredentialState } from '#contract/resources/credential-states.ts'
import { emit } from '../../events/outbox.ts'
import { backoff } from '../../platform/backoff.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import { isTransient, type Sql } from '../../platform/postgres/database.ts'
import { unlessAborted } from '../../platform/abort-signals.ts'
import { CredentialUnavailable } from './credential-unavailable.ts'
import type { IssuerClient } from './issuer-client.ts'
import { IssuerFailure } from './issuer-failure.ts'
import type { OAuthTokens } from './oauth-settings.ts'
import {
  endRenewals,
  findTokenRow,
  postponeRenewal,
  replaceTokens,
  takeLease,
  type TokenRow,
} from './token-rows.queries.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** An access token, and the generation of its credential's tokens. */
export interface AccessToken {
  value: string
  generation: number
}

/** Tokens of credentials of type `oauth2`. Only one process at a time renews a credential (decision 0032). */
export interface AccessTokens {
  /**
   * Returns a valid token; undefined if the credential was deleted. Renews the token if that is due, or if a server
   * refused the token of the generation `refused`. After five refusals within ten minutes, the refused token is
   * returned again.
   * @throws CredentialUnavailable if there is no token to be had, SecretUnreadable if the tokens cannot be decrypted,
   *   and the signal's reason
   */
  get(
    credential_id: string,
    options: { signal: AbortSignal; refused?: number | undefined },
  ): Promise<AccessToken | undefined>
  /** Resolves when every renewal of this process has stored its result. */
  stop(): Promise<void>
}

export interface AccessTokensOptions {
  sql: Sql
  secrets: Secrets
  issuers: IssuerClient
  log: Logger
}

/** Duration of the sole right to renew: longer than all requests to an issuer may take. */
const lease_seconds = 30
/** A token with less time left may expire on its way. */
const least_seconds = 0.5
/** Poll interval for the renewal of another process. */
const poll_ms = { first: 20, max: 250 }
/** How long storing new tokens is retried, because an issuer may issue them only once. */
const write_ms = 60_000
const writeBackoff_ms = { first: 50, max: 2000 }
/** Maximum renewals for one call, because an issuer may issue tokens that have expired already. */
const renewalsMax = 3

export function makeAccessTokens(options: AccessTokensOptions): AccessTokens {
  const { sql, log } = options
  /** Renewals of this process in flight, by credential. */
  const underway = new Map<string, Promise<void>>()
  const renewing = (row: TokenRow, isRefused: boolean): Promise<void> => {
    const { credential_id } = row
    const running = underway.get(credential_id)
    if (running) return running
    const renewal = renew(options, row, isRefused).finally(() => underway.delete(credential_id))
    underway.set(credential_id, renewal)
    return renewal
  }

  return {
    async get(credential_id, { signal, refused }) {
      for (let renewals = 0, looks = 1; ; looks++) {
        signal.throwIfAborted()
        const row = await findTokenRow(sql, credential_id)
        if (!row) return undefined
        const tokens = readTokens(options, row)
        if (tokens === 'unreadable') throw new SecretUnreadable(`credential ${row.name}`)
        const next = nextOf(row, tokens, refused)
        switch (next.do) {
          case 'use':
            return { value: next.value, generation: row.generation }
          case 'wait':
            await delay(backoff(looks, poll_ms), undefined, { signal }).catch(() => {})
            break
          case 'end':
            await end(sql, row, row.lease, next.error)
            break
          case 'renew':
            if (++renewals > renewalsMax) throw new CredentialUnavailable(row, tooShort, 1)
            // The renewal continues without the call that started it, because the issued tokens must be stored.
            await unlessAborted(renewing(row, next.isRefused), signal)
            break
          case 'none':
            throw new CredentialUnavailable(row, row.error ?? notConnected(row), next.retry_seconds)
        }
      }
    },
    async stop() {
      const ended = await Promise.allSettled(underway.values())
      for (const one of ended)
        if (one.status === 'rejected')
          log.warn({ err: one.reason as unknown }, 'a renewal of a credential failed; the next call tries again')
    },
  }
}

/** What must happen before a call can be made. */
type Next =
  | { do: 'use'; value: string }
  | { do: 'wait' }
  | { do: 'renew'; isRefused: boolean }
  | { do: 'end'; error: { code: string; message: string } }
  | { do: 'none'; retry_seconds: number | undefined }

function nextOf(row: TokenRow, tokens: OAuthTokens | undefined, refused: number | undefined): Next {
  const { left_seconds: left, early_seconds: early, renew_in_seconds: due_in, lease_left_seconds } = row
  const lasts = tokens !== undefined && (left === null || left > least_seconds)
  // The server refuses all tokens, so the call fails with this one and the issuer is not asked again.
  if (lasts && row.generation === refused && row.is_refused_often && (due_in === null || due_in > 0))
    return { do: 'use', value: tokens.access_token }
  const isGood = lasts && row.generation !== refused
  const use: Next | undefined = isGood ? { do: 'use', value: tokens.access_token } : undefined
  if (use && (due_in === null || due_in > 0)) return use
  if (isOver(row)) return use ?? { do: 'none', retry_seconds: undefined }
  if (row.settings.grant === 'authorization_code' && tokens?.refresh_token === undefined) {
    if (use) return use
    return tokens === undefined ? { do: 'none', retry_seconds: undefined } : { do: 'end', error: noRefreshToken }
  }
  if (row.lease !== null) {
    // Another process renews the token. It is used meanwhile if it is far from its end, because an issuer may take
    // long; the margin of a second is for ends in whole seconds.
    if ((lease_left_seconds ?? 0) > 0) return use && (left ?? Infinity) > (early ?? 0) / 2 + 1 ? use : { do: 'wait' }
    // The process of the renewal ended in between. The refresh token may be spent, and must not be sent again (RFC 9700
    // §4.14).
    if (row.settings.grant === 'authorization_code' && row.rotates !== false)
      return { do: 'end', error: unknownOutcome }
  }
  const retry_seconds = row.retry_in_seconds ?? 0
  if (retry_seconds > 0) return use ?? { do: 'none', retry_seconds }
  return { do: 'renew', isRefused: row.generation === refused }
}

/** Whether renewals cannot help: a person must connect the credential or correct its client. */
function isOver({ settings, status, retry_in_seconds }: TokenRow): boolean {
  return settings.grant === 'authorization_code'
    ? status === 'needs_authorization'
    : status === 'failing' && retry_in_seconds === null
}

const tooShort = { code: 'token_too_short', message: 'The issuer issues tokens that have expired already.' }
const noRefreshToken = {
  code: 'no_refresh_token',
  message: 'The access token has expired or was refused, and there is no refresh token. Connect the credential again.',
}
const unknownOutcome = {
  code: 'outcome_unknown',
  message:
    'A process ended while it renewed the tokens, so the refresh token may be spent. Connect the credential again.',
}

function notConnected({ name }: TokenRow): { code: string; message: string } {
  return { code: 'not_connected', message: `The credential ${name} is not connected yet.` }
}

/**
 * Renews tokens unless another process does. It takes the lease in one statement, calls the issuer outside of any
 * transaction, and stores the result in another statement. The caller reads the outcome from the row.
 */
async function renew(
  { sql, secrets, issuers, log }: AccessTokensOptions,
  row: TokenRow,
  isRefused: boolean,
): Promise<void> {
  const { credential_id, generation, settings } = row
  const lease = randomUUID()
  const at = await takeLease(sql, row, { lease, seen: row.lease, seconds: lease_seconds, isRefused })
  if (at === undefined) return
  const old = readTokens({ secrets, log }, row)
  const refresh_token = typeof old === 'object' ? old.refresh_token : undefined
  const client_secret = readSecret(secrets, row)
  try {
    const issued = await issuers.renew(
      { settings, client_secret },
      settings.grant === 'authorization_code' ? refresh_token : undefined,
    )
    const rotates = refresh_token === undefined ? null : isReplaced(issued.refresh_token, refresh_token)
    const tokens = sealTokens(secrets, credential_id, {
      access_token: issued.access_token,
      refresh_token: issued.refresh_token ?? refresh_token,
    })
    const expires_in = issued.expires_in ?? null
    const kept = await persistently(() => replaceTokens(sql, row, { tokens, expires_in, at, rotates }))
    if (!kept)
      log.info(
        { credential_id, generation },
        'the tokens of a credential were replaced meanwhile; the renewed ones are dropped',
      )
  } catch (error) {
    if (!(error instanceof IssuerFailure)) throw error
    const known = [client_secret, refresh_token].filter((secret) => secret !== undefined)
    const failure = {
      code: error.code,
      message: known.reduce((text, secret) => text.replaceAll(secret, '[redacted]'), error.message),
    }
    log.warn(
      { credential_id, code: failure.code, kind: error.kind },
      'a credential could not be renewed; tasks that need it wait',
    )
    const mayRepeat =
      error.kind === 'unavailable' ||
      (error.kind === 'unknown' && (settings.grant === 'client_credentials' || row.rotates === false))
    await persistently(() => (mayRepeat ? postponeRenewal(sql, row, lease, failure) : end(sql, row, lease, failure)))
  }
}

/** Records that no renewal can help any more, and emits the event once. */
async function end(
  sql: Sql,
  row: TokenRow,
  lease: string | null,
  error: { code: string; message: string },
): Promise<void> {
  const { credential_id, name, org_id, project_id, settings, was_connected } = row
  const status: CredentialState = settings.grant === 'authorization_code' ? 'needs_authorization' : 'failing'
  await sql.begin(async (tx) => {
    if (!(await endRenewals(tx, row, { lease, status, error })) || !was_connected) return
    const credential = { id: credential_id, name, project_id: projectId(project_id), status }
    await emit(tx, 'credential.expired', { org_id, project_id }, { credential, error })
  })
}

/** Whether a refresh token was replaced. Without one in the response, the old one stays valid (RFC 6749 §6). */
function isReplaced(issued: string | undefined, before: string): boolean {
  return issued !== undefined && issued !== before
}

export function sealTokens(secrets: Pick<Secrets, 'encrypt'>, credential_id: string, tokens: OAuthTokens): Buffer {
  return secrets.encrypt(secretLabels.tokens, JSON.stringify(tokens), credential_id)
}

/** The client's secret; undefined for a public client. Throws if it was encrypted with another secret key. */
export function readSecret(
  secrets: Pick<Secrets, 'decrypt'>,
  { credential_id, client_secret }: Pick<TokenRow, 'credential_id' | 'client_secret'>,
): string | undefined {
  return client_secret === null ? undefined : secrets.decrypt(secretLabels.client_secret, client_secret, credential_id)
}

/** The tokens of a row; `unreadable`, with a log entry, if they were encrypted with another secret key. */
function readTokens(
  { secrets, log }: Pick<AccessTokensOptions, 'secrets' | 'log'>,
  row: TokenRow,
): OAuthTokens | undefined | 'unreadable' {
  try {
    readSecret(secrets, row)
    if (row.tokens === null) return undefined
    // Only this service can have encrypted it, so it has the expected form.
    return JSON.parse(secrets.decrypt(secretLabels.tokens, row.tokens, row.credential_id)) as OAuthTokens
  } catch (error) {
    log.warn(
      { err: error, credential_id: row.credential_id },
      'a credential could not be decrypted; tasks that need it fail',
    )
    return 'unreadable'
  }
}

/** Retries a write while the database is unavailable. */
async function persistently<T>(write: () => Promise<T>): Promise<T> {
  const until = performance.now() + write_ms
  for (let failures = 1; ; failures++) {
    try {
      return await write()
    } catch (error) {
      if (!isTransient(error) || performance.now() > until) throw error
      await delay(backoff(failures, writeBackoff_ms))
    }
  }
}
