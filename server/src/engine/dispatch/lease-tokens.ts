import { createHash, randomBytes } from 'node:crypto'
import type { Secrets } from '../../platform/crypto/secrets.ts'

/** What a lease is for. A token of one kind is not valid for the other. */
export type LeaseKind = 'tool call lease' | 'work lease'

/** Prefix of lease tokens; no API key or OAuth token has it. */
export const leasePrefix = 'lease_'
const tokenForm = /^lease_([A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$/

/** The SHA-256 of a lease token, which is all that is stored of it. */
export function leaseHash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** Creates an unguessable token with a MAC, so the service recognizes its tokens. */
export function newLeaseToken(secrets: Secrets, kind: LeaseKind): string {
  const nonce = randomBytes(18).toString('base64url')
  return `${leasePrefix}${nonce}${secrets.hmac(kind, nonce).toString('base64url')}`
}

/** Whether this service issued the token. Any other is a forgery, not an ended lease. */
export function isOurs(secrets: Secrets, kind: LeaseKind, token: string): boolean {
  const [, nonce = '', mac = ''] = tokenForm.exec(token) ?? []
  return secrets.isHmac(kind, nonce, Buffer.from(mac, 'base64url'))
}
