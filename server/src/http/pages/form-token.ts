import type { Secrets } from '../../platform/crypto/secrets.ts'

/** Tokens in HTML forms that prove that the form was ours and this browser's (decision S2). */
export interface FormTokens {
  /** A token for one form, bound to what identifies the browser: its session or its pre-session cookie. */
  issue(form: string, ...bound: string[]): string
  /** Whether `token` is for this form and binding; false for anything else, a missing one too. */
  verify(token: string | undefined, form: string, ...bound: string[]): boolean
}

export function formTokens(secrets: Pick<Secrets, 'hmac' | 'isHmac'>): FormTokens {
  const label = 'form token'
  // As JSON no two lists of parts read the same.
  return {
    issue: (...parts) => secrets.hmac(label, JSON.stringify(parts)).toString('base64url'),
    verify: (token, ...parts) => secrets.isHmac(label, JSON.stringify(parts), Buffer.from(token ?? '', 'base64url')),
  }
}
