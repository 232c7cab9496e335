import type { FastifyReply, FastifyRequest } from 'fastify'
import type { SsoConfig } from '../../../config/config-sso.ts'
import { basePathOf } from '../../../http/connection/base-path.ts'
import { safePath } from '../../../http/pages/forms.ts'
import { encryptedState } from '../../../http/pages/encrypted-state.ts'
import { hashOf } from '../../../platform/crypto/hash-of.ts'
import type { Secrets } from '../../../platform/crypto/secrets.ts'
import type { SsoChecks } from './sso-client.ts'
import type { LinkingUser } from './sso-links.ts'

/** How long a user may take at a provider. */
export const attemptLife_seconds = 600

/** State of a sign-in that is in progress at a provider. */
export interface SsoAttempt {
  checks: SsoChecks
  /** Local path to which the browser returns. */
  return_to: string
  /** The token of an invitation. */
  invitation?: string | undefined
  /** The user to link the identity with, if this is not a sign-in. */
  link?: LinkingUser
}

/** Sign-ins in progress, each in a cookie of its browser. */
export interface SsoAttempts {
  /** Stores the attempt in the browser; an earlier one with the same provider is dropped. */
  keep(reply: FastifyReply, provider: SsoConfig, attempt: SsoAttempt): void
  /**
   * Reads the attempt and clears its cookie, so that it is used once. Undefined if there is none, or it has expired.
   */
  take(request: FastifyRequest, reply: FastifyReply, provider: SsoConfig): SsoAttempt | undefined
}

/**
 * Keeps attempts in encrypted cookies that are bound to the provider, so that a response of one provider cannot be used
 * with another. The cookie holds the expected state, so no browser can finish a sign-in that another browser
 * began. `__Host-` keeps other hosts of the same domain from setting the cookie; it requires the path `/`, so services
 * below different paths of one host use different names.
 */
export function ssoAttempts(secrets: Pick<Secrets, 'encrypt' | 'decrypt'>, public_url: () => string): SsoAttempts {
  const secure = (): boolean => public_url().startsWith('https:')
  const state = encryptedState<SsoAttempt>(secrets, 'sso attempt', attemptLife_seconds)
  const nameOf = ({ name }: SsoConfig): string =>
    `${secure() ? '__Host-' : ''}cadre_sso_${name}${mark(basePathOf(public_url()))}`
  const attributes = () => ({ path: '/', httpOnly: true, sameSite: 'lax', secure: secure() }) as const
  return {
    keep(reply, provider, attempt) {
      const value = state.seal(attempt, provider.name)
      void reply.setCookie(nameOf(provider), value, { ...attributes(), maxAge: attemptLife_seconds })
    },
    take(request, reply, provider) {
      const value = request.cookies[nameOf(provider)]
      if (value !== undefined) void reply.clearCookie(nameOf(provider), attributes())
      return state.open(value, provider.name)
    },
  }
}

/** Distinguishes services on one host, in characters that the name of a cookie may have. */
function mark(base_path: string): string {
  return base_path === '' ? '' : `_${hashOf(base_path).toString('hex').slice(0, 8)}`
}

/** Longest path to return to, so that the cookie stays within the limit of browsers. */
const returnMax = 1500

/** Where the browser returns: a local path, or the start page. */
export function returnPath(text: string | undefined): string {
  const path = safePath(text, '/')
  return path.length > returnMax ? '/' : path
}
