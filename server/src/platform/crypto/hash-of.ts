import { createHash } from 'node:crypto'

/**
 * SHA-256, under which keys, tokens, cookies and client secrets are kept. They are random enough that a slow hash would
 * protect nothing more (decision D54); passwords are not, and have `passwords.ts`.
 */
export function hashOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
