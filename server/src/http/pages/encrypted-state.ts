import type { Secrets } from '../../platform/crypto/secrets.ts'

/** Values that a browser carries for us: it can neither read nor change them, and they mean something for a time only. */
export interface EncryptedState<T> {
  /** The value as base64url. `bound` says where it counts: a provider, a browser. */
  seal(value: T, bound: string): string
  /** Decrypts a value; undefined where the text is invalid, bound to something else, or expired. */
  open(text: string | undefined, bound: string): T | undefined
}

/** `label` gives each use its own key; `life_seconds` is how long a value is valid. */
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
        // Only this service can have encrypted it, so it has the form in which it was encrypted.
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
