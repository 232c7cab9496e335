import type { Secrets } from '../../platform/crypto/secrets.ts'

/** CSRF tokens: each proves that this service issued a form to this browser (decision S2). */
export interface FormTokens {
  /** Makes a token for one form, bound to the browser's session or pre-session cookie. */
  issue(form: string, ...bound: string[]): string
  /** Whether `token` was issued for this form and binding; false without a token. */
  verify(token: string | undefined, form: string, ...bound: string[]): boolean
}

export function formTokens(secrets: Pick<Secrets, 'hmac' | 'isHmac'>): FormTokens {
  const label = 'form token'
  // JSON keeps the parts apart: joined text could be equal for different parts.
  return {
    issue: (...parts) => secrets.hmac(label, JSON.stringify(parts)).toString('base64url'),
    verify: (token, ...parts) => secrets.isHmac(label, JSON.stringify(parts), Buffer.from(token ?? '', 'base64url')),
  }
}
