import type { Secrets } from '../../platform/crypto/secrets.ts'

/** State that a browser carries, encrypted and authenticated, with an expiry. */
export interface EncryptedState<T> {
  /** Encrypts a value as base64url. `bound` is the context in which it is valid, such as a provider or a browser. */
  seal(value: T, bound: string): string
  /** Decrypts a value; undefined if the text is invalid, bound to another context, or expired. */
  open(text: string | undefined, bound: string): T | undefined
}

/** `label` selects a separate key for each use; `life_seconds` is how long a value is valid. */
export function encryptedState<T extends object>(
  secrets: Pick<Secrets, 'encrypt' | 'decrypt'>,
  label: string,
  life_seconds: number,
): EncryptedState<T> {
  return {
    seal(value, bound) {
      const ends_at_ms = Date.now() + life_seconds * 1000
      return secrets.encrypt(label, JSON.stringify({ value, ends_at_ms }), bound).toString('base64url')
    },
    open(text, bound) {
      if (text === undefined) return undefined
      try {
        // Only this service can have encrypted it, so its shape needs no check.
        const opened = JSON.parse(secrets.decrypt(label, Buffer.from(text, 'base64url'), bound)) as {
          value: T
          ends_at_ms: number
        }
        return opened.ends_at_ms > Date.now() ? opened.value : undefined
      } catch {
        return undefined
      }
    },
  }
}
