import { createHash } from 'node:crypto'

/**
 * SHA-256, the stored form of keys, tokens, cookies and client secrets. They are random, so a slow hash would not protect
 * them better (decision D54); for passwords see `passwords.ts`.
 */
export function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
