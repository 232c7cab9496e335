import { createHash, randomBytes } from 'node:crypto'
import type { Secrets } from '../../platform/crypto/secrets.ts'

/** What leases are given out for; a token of one kind is none of the other. */
export type LeaseKind = 'tool call lease' | 'work lease'

/** The beginning of every token of a lease; no API key and no OAuth token begins with it. */
export const leasePrefix = 'lease_'
const tokenForm = /^lease_([A-Za-z0-9_-]{24})([A-Za-z0-9_-]{43})$/

/** The SHA-256 by which a lease's token is kept. */
export function leaseHash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** A token that no caller can guess, and that shows that this service made it. */
export function newLeaseToken(secrets: Secrets, kind: LeaseKind): string {
  const nonce = randomBytes(18).toString('base64url')
  return `${leasePrefix}${nonce}${secrets.hmac(kind, nonce).toString('base64url')}`
}

/** Whether this service made a token: others are guesses, and not leases that have ended. */
export function isOurs(secrets: Secrets, kind: LeaseKind, token: string): boolean {
  const [, nonce = '', mac = ''] = tokenForm.exec(token) ?? []
  return secrets.isHmac(kind, nonce, Buffer.from(mac, 'base64url'))
}
