import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** The shortest secret key, in characters. */
export const secretKeyLengthMin = 32

/** Encrypts values that must be read back, and signs. Each label has a separate key. */
export interface Secrets {
  /** Identifies the key without revealing it: 8 hexadecimal digits, compared with the database's at the start. */
  key_id: string
  /** Whether values of the key with this id can be decrypted. */
  reads(key_id: string): boolean
  /**
   * Encrypts `text` with AES-256-GCM and a random nonce. `aad` is the id of the row that will hold it: in another row, or
   * under another label, the bytes cannot be decrypted.
   */
  encrypt(label: string, text: string, aad: string): Buffer
  /** Decrypts a value. Throws `WrongSecretKey` or `DamagedSecret`. */
  decrypt(label: string, encrypted: Uint8Array, aad: string): string
  /** HMAC-SHA256 of `text`, 32 bytes. `isHmac` checks it. */
  hmac(label: string, text: string): Buffer
  /** Whether `mac` is the HMAC of `text` under the key or the fallback key, compared in constant time. */
  isHmac(label: string, text: string, mac: Uint8Array): boolean
  /** Keys for the library that signs cookies, 43 base64url characters each: the first one signs, all verify. */
  signingKeys(label: string): string[]
}

/** The value was encrypted under another `CADRE_SECRET_KEY`. */
export class WrongSecretKey extends Error {
  constructor(written: string, ours: string) {
    super(
      `A stored secret was encrypted with another CADRE_SECRET_KEY (key ${written}; this process has ${ours}). ` +
        `Start with the key ${written}, or set CADRE_SECRET_KEY_FALLBACK to it.`,
    )
    this.name = 'WrongSecretKey'
  }
}

/** The database's secrets are encrypted with another key than the one of the starting process. */
export class WrongSecretKeyAtStart extends Error {
  constructor(database_key_id: string, key_id: string) {
    super(
      `The secrets of this database are encrypted with the secret key ${database_key_id}, and this process has the key ${key_id}. ` +
        `Set CADRE_SECRET_KEY to the key ${database_key_id}, or put its file secret.key back into the data folder. ` +
        `To replace the key ${database_key_id}, set CADRE_SECRET_KEY_FALLBACK to it. ` +
        'If it is lost, start once with CADRE_SECRET_KEY_LOST=acknowledged: stored secrets are then unreadable and must be set again.',
    )
    this.name = 'WrongSecretKeyAtStart'
  }
}

/** The bytes were cut, changed, or moved from another label or row. */
export class DamagedSecret extends Error {
  constructor(label: string) {
    super(`A stored secret (${label}) was changed, or belongs to another row.`)
    this.name = 'DamagedSecret'
  }
}

/** Layout of an encrypted value: format (1 byte), key id (4), nonce (12), tag (16), cipher text. `encrypted-columns.ts` reads the key id. */
const format = 1
const nonceAt = 5
const tagAt = 17
const textAt = 33

/** A secret key, and the derivation of keys from it (HKDF-SHA256). */
interface Key {
  id: Buffer
  derive(use: string, label: string): KeyObject
}

/**
 * Encrypts and signs with keys derived from `secretKey`; decrypts and verifies also with those of `fallback`, so that the
 * key can be replaced while the service runs. Both are text of at least 32 characters and should be random, because the
 * derivation does not slow down guessing. Throws a `RangeError` for a shorter one.
 */
export function makeSecrets(secretKey: string, fallback?: string): Secrets {
  const key = makeKey(secretKey)
  const keys = fallback === undefined || fallback === secretKey ? [key] : [key, makeKey(fallback)]
  const hmacOf = ({ derive }: Key, label: string, text: string): Buffer =>
    createHmac('sha256', derive('hmac', label)).update(text).digest()

  return {
    key_id: key.id.toString('hex'),
    reads: (key_id) => keys.some(({ id }) => id.toString('hex') === key_id),
    encrypt(label, text, aad) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key.derive('encrypt', label), nonce).setAAD(Buffer.from(aad))
      const encrypted = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([Buffer.of(format), key.id, nonce, cipher.getAuthTag(), encrypted])
    },
    decrypt(label, encrypted, aad) {
      const bytes = Buffer.from(encrypted.buffer, encrypted.byteOffset, encrypted.byteLength)
      if (bytes.length < textAt || bytes[0] !== format) throw new DamagedSecret(label)
      const written = bytes.subarray(1, nonceAt)
      const own = keys.find(({ id }) => id.equals(written))
      if (!own) throw new WrongSecretKey(written.toString('hex'), key.id.toString('hex'))
      const decipher = createDecipheriv('aes-256-gcm', own.derive('encrypt', label), bytes.subarray(nonceAt, tagAt), {
        authTagLength: 16,
      })
        .setAAD(Buffer.from(aad))
        .setAuthTag(bytes.subarray(tagAt, textAt))
      try {
        return Buffer.concat([decipher.update(bytes.subarray(textAt)), decipher.final()]).toString('utf8')
      } catch {
        throw new DamagedSecret(label)
      }
    },
    hmac: (label, text) => hmacOf(key, label, text),
    isHmac: (label, text, mac) =>
      keys.some((one) => {
        const expected = hmacOf(one, label, text)
        return mac.length === expected.length && timingSafeEqual(mac, expected)
      }),
    signingKeys: (label) => keys.map(({ derive }) => derive('sign', label).export().toString('base64url')),
  }
}

function makeKey(text: string): Key {
  if ([...text].length < secretKeyLengthMin) {
    throw new RangeError(`The secret key must have at least ${secretKeyLengthMin} characters.`)
  }
  // Node uses a key object several times faster than the bytes of a key.
  const derived = new Map<string, KeyObject>()
  const derive = (use: string, label: string): KeyObject => {
    const info = `${use} ${label}`
    const key = derived.get(info) ?? createSecretKey(Buffer.from(hkdfSync('sha256', text, 'cadre', info, 32)))
    derived.set(info, key)
    return key
  }
  return { id: derive('identify', 'key').export().subarray(0, 4), derive }
}
