import { randomBytes } from 'node:crypto'
import type { TriggerSource } from '#contract/doors/trigger-sources.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

/** Length of the secret part of an address in bytes: 256 bits. */
const address_bytes = 32
const secret_bytes = 32

/** A new secret part of an address, and the hash that is stored. */
export function newAddress(): { address: string; address_hash: Buffer } {
  const address = randomBytes(address_bytes).toString('base64url')
  return { address, address_hash: hashOf(address) }
}

/** Whether a text has the form of the secret part of an address. */
export function isAddress(text: string): boolean {
  return /^[A-Za-z0-9_-]{43}$/.test(text)
}

/** A new secret in the format that the sender expects. */
export function newSecret(source: TriggerSource): string {
  const bytes = randomBytes(secret_bytes)
  return source === 'standard_webhooks' ? `whsec_${bytes.toString('base64')}` : bytes.toString('base64url')
}

/** Encrypts the secret of a trigger, with the trigger id as associated data. */
export function encryptSecret(secrets: Secrets, secret: string, trigger_id: string): Buffer {
  return secrets.encrypt(secretLabels.trigger, secret, trigger_id)
}

/** The address that a sender posts to. */
export function urlOf(public_url: string, address: string): string {
  return `${public_url.replace(/\/$/, '')}/hooks/${address}`
}
