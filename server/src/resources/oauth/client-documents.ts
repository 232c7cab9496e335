import { clientDocumentBounds as bounds } from '#contract/accounts/oauth.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { scopes } from '#contract/core/scopes.ts'
import { EgressError, EgressRefused, type Egress, type EgressAnswer } from '../../platform/egress/safe-fetch.ts'
import { isCleanText } from '../../http/validation.ts'
import { isLoopback, redirectUriError } from './redirect-uris.ts'

/** Why the metadata of an app is refused. The message contains no secret. */
export class ClientDocumentError extends Error {
  /** Error code of RFC 7591 (3.2.2). */
  readonly code: 'invalid_client_metadata' | 'invalid_redirect_uri'
  constructor(message: string, code: ClientDocumentError['code'] = 'invalid_client_metadata') {
    super(message)
    this.code = code
  }
}

/** The validated metadata document of an app. */
export interface ClientDocument {
  name: string
  redirect_uris: string[]
  scopes: string[]
  native: boolean
  /** Seconds until it must be read again. */
  fresh_seconds: number
}

/**
 * Whether a client id is the URL of a metadata document (draft-ietf-oauth-client-id-metadata-document, 3): https,
 * with a path, without fragment, user info and dot segments, and in normalized form.
 */
export function isDocumentAddress(client_id: string): boolean {
  if (client_id.length > bounds.address || !/^https:\/\/[\x21-\x7e]+$/.test(client_id)) return false
  if (/[\\"<>^`{|}#]/.test(client_id)) return false
  const url = URL.parse(client_id)
  // The parser normalizes dot segments, capital letters and a default port, so a changed URL was not in normalized
  // form.
  return url !== null && url.href === client_id && url.pathname !== '/' && url.username === '' && url.password === ''
}

/** Reads the document at `client_id`, through the guarded egress and without redirects. Throws `ClientDocumentError`. */
export async function fetchClientDocument(egress: Pick<Egress, 'fetch'>, client_id: string): Promise<ClientDocument> {
  const answer = await fetchAnswer(egress, client_id)
  if (answer.status !== 200) throw new ClientDocumentError(`its metadata document has status ${answer.status}`)
  const type = answer.headers['content-type'] ?? ''
  if (!/^application\/([\w.-]+\+)?json *(;|$)/i.test(type))
    throw new ClientDocumentError('its metadata document is not sent as application/json')
  let document: unknown
  try {
    document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer.body))
  } catch {
    throw new ClientDocumentError('its metadata document is not JSON')
  }
  return { ...readClientDocument(client_id, document), fresh_seconds: freshSeconds(answer.headers['cache-control']) }
}

async function fetchAnswer(egress: Pick<Egress, 'fetch'>, client_id: string): Promise<EgressAnswer> {
  try {
    return await egress.fetch(client_id, {
      purpose: 'client_document',
      method: 'GET',
      headers: { accept: 'application/json' },
    })
  } catch (error) {
    if (error instanceof EgressRefused)
      throw new ClientDocumentError(`the URL of its metadata document is refused: ${error.message}`)
    if (error instanceof EgressError)
      throw new ClientDocumentError(`its metadata document could not be read: ${error.message}`)
    throw error
  }
}

/** Validates a document. Drops redirect URIs that are not allowed here. Throws `ClientDocumentError`. */
export function readClientDocument(client_id: string, document: unknown): Omit<ClientDocument, 'fresh_seconds'> {
  if (!isObject(document)) throw new ClientDocumentError('its metadata document is not a JSON object')
  if (document['client_id'] !== client_id)
    throw new ClientDocumentError('the client_id in its metadata document differs from the URL of the document')
  if ('client_secret' in document || 'client_secret_expires_at' in document)
    throw new ClientDocumentError('its metadata document must not have a client_secret, because the document is public')
  const method = document['token_endpoint_auth_method'] ?? 'none'
  if (method !== 'none')
    throw new ClientDocumentError(
      'its token_endpoint_auth_method must be none, because such apps are public and use PKCE',
    )
  return readClientMetadata(document, new URL(client_id).host)
}

/**
 * Validates the metadata of an app; `name` is the default name. Drops redirect URIs that are not allowed here. Throws
 * `ClientDocumentError`.
 */
export function readClientMetadata(
  document: Record<string, unknown>,
  name: string,
): Omit<ClientDocument, 'fresh_seconds'> {
  includes(document, 'grant_types', 'authorization_code')
  includes(document, 'response_types', 'code')
  const redirect_uris = textsOf(document, 'redirect_uris') ?? []
  const native = redirect_uris.some(isLoopback)
  const usable = redirect_uris.filter((uri) => uri.length <= bounds.redirect_uri && !redirectUriError(uri, native))
  if (usable.length === 0)
    throw new ClientDocumentError(
      'its metadata has no redirect_uris of https, or of http on a loopback address',
      'invalid_redirect_uri',
    )
  return {
    name: nameOf(document['client_name'] ?? name),
    redirect_uris: usable,
    scopes: scopesOf(document['scope']),
    native,
  }
}

function includes(document: Record<string, unknown>, member: string, value: string): void {
  const given = textsOf(document, member)
  if (given && !given.includes(value)) throw new ClientDocumentError(`its ${member} must include ${value}`)
}

function textsOf(document: Record<string, unknown>, member: string): string[] | undefined {
  const given = document[member]
  if (given === undefined) return undefined
  const isList = Array.isArray(given) && given.length <= bounds.entries
  if (!isList || !given.every((entry) => typeof entry === 'string'))
    throw new ClientDocumentError(`its ${member} must be a list of at most ${bounds.entries} texts`)
  return given
}

/** Validates a name for pages: no invisible characters, and none that change the text direction. */
function nameOf(given: unknown): string {
  const isName =
    typeof given === 'string' && isCleanText(given) && given.trim() !== '' && [...given].length <= bounds.name
  if (!isName || /[\p{C}\p{Zl}\p{Zp}]/u.test(given))
    throw new ClientDocumentError(`its client_name must be a text of 1 to ${bounds.name} visible characters`)
  return given.trim().normalize('NFC')
}

/** Scopes that unregistered apps may get: not full access. */
const grantable = scopes.filter((scope) => scope !== 'admin')

function scopesOf(given: unknown): string[] {
  if (given === undefined) return [...grantable]
  if (typeof given !== 'string') throw new ClientDocumentError('its scope must be a text of scopes with spaces between')
  const asked = new Set(given.split(' '))
  return grantable.filter((scope) => asked.has(scope))
}

function freshSeconds(cache_control: string | undefined): number {
  if (/(^|[, ])(no-store|no-cache)([, ]|$)/i.test(cache_control ?? '')) return bounds.fresh_seconds_min
  const said = /(?:^|[, ])max-age=(\d{1,9})/i.exec(cache_control ?? '')?.[1]
  const seconds = said === undefined ? bounds.fresh_seconds : Number(said)
  return Math.min(bounds.fresh_seconds_max, Math.max(bounds.fresh_seconds_min, seconds))
}
