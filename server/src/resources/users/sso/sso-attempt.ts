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

/** What belongs to a sign-in that is under way at a provider. */
export interface SsoAttempt {
  checks: SsoChecks
  /** The local path where the browser goes at the end. */
  return_to: string
  /** The token of an invitation. */
  invitation?: string | undefined
  /** The user to link with, where this is no sign-in. */
  link?: LinkingUser
}

/** Sign-ins that are under way, each in a cookie of its browser. */
export interface SsoAttempts {
  /** Stores the attempt in the browser; an earlier one with the same provider is dropped. */
  keep(reply: FastifyReply, provider: SsoConfig, attempt: SsoAttempt): void
  /** Takes the attempt from the browser: it counts once. Undefined where there is none, or its time is over. */
  take(request: FastifyRequest, reply: FastifyReply, provider: SsoConfig): SsoAttempt | undefined
}

/**
 * Encrypted and bound to the provider, so that an answer of one provider cannot be played to another. Who cannot read the
 * cookie cannot make a browser finish what another began: it has the state that must come back. `__Host-` keeps other
 * hosts of the same domain from planting one; it wants the path `/`, so services below different paths of one host have names of
 * their own.
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

/** Tells the services of one host apart, in letters that names of cookies may have. */
function mark(base_path: string): string {
  return base_path === '' ? '' : `_${hashOf(base_path).toString('hex').slice(0, 8)}`
}

/** The longest path to go on to, so that the cookie stays within what browsers keep. */
const returnMax = 1500

/** Where to go at the end: a local path, or the start page. */
export function returnPath(text: string | undefined): string {
  const path = safePath(text, '/')
  return path.length > returnMax ? '/' : path
}
