import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

/** Tokens in HTML forms that prove that the form was ours and this browser's (decisions 1.4). */
export interface FormTokens {
  /** A token for one form, bound to what identifies the browser: its session or its pre-session cookie. */
  issue(form: string, ...bound: string[]): string
  /** Whether `token` is for this form and binding; false for anything else, a missing one too. */
  verify(token: string | undefined, form: string, ...bound: string[]): boolean
}

/** `secrets`: the first makes tokens, all verify them, so that a secret can be replaced. */
export function formTokens(secrets: readonly string[]): FormTokens {
  const keys = secrets.map((secret) => Buffer.from(hkdfSync('sha256', secret, '', 'cadre form tokens', 32)))
  const [first] = keys
  if (!first) throw new Error('form tokens need a secret')
  return {
    issue: (...parts) => sign(first, parts).toString('base64url'),
    verify(token, ...parts) {
      if (token === undefined) return false
      const given = Buffer.from(token, 'base64url')
      return keys.some((key) => {
        const wanted = sign(key, parts)
        return given.length === wanted.length && timingSafeEqual(given, wanted)
      })
    },
  }
}

/** Parts are written with their lengths, so that no two lists of parts read the same. */
function sign(key: Buffer, parts: readonly string[]): Buffer {
  return createHmac('sha256', key).update(JSON.stringify(parts)).digest()
}
