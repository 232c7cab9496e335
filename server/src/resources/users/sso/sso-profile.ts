import type { IDToken, UserInfoResponse } from 'openid-client'
import { bounds } from '#contract/core/limits.ts'
import { isCleanText } from '../../../http/validation.ts'
import { SsoFailure } from './sso-failure.ts'

/** A user's profile at an identity provider, as stated there and checked here. */
export interface SsoProfile {
  issuer: string
  /** Names the account there for ever, and is compared as it is. */
  subject: string
  /** Undefined where the provider tells none that can be one. */
  email: string | undefined
  /** Whether the provider says that the address is theirs. */
  email_verified: boolean
  name: string | undefined
  /** Its groups; undefined where the provider says nothing of them. */
  groups?: readonly string[] | undefined
}

/** The longest subject that OpenID Connect allows (Core §2). */
const subjectMax = 255
const emailMax = 254

type Claims = Pick<IDToken, 'iss' | 'sub'> & Record<string, unknown>

/**
 * Reads a user's profile: the ID token, and the userinfo response where it was requested. An address and its
 * verification come from the same of the two. Throws `SsoFailure` for an invalid subject.
 */
export function profileOf(claims: Claims, more: UserInfoResponse | undefined, groups_claim = 'groups'): SsoProfile {
  const { iss, sub } = claims
  if (sub === '' || sub.length > subjectMax || !isCleanText(sub) || !isCleanText(iss))
    throw new SsoFailure('unusable', 'the subject is none that can be kept')
  const source: Record<string, unknown> = more?.email === undefined ? claims : more
  const email = emailOf(source.email)
  return {
    issuer: iss,
    subject: sub,
    email,
    // Some providers write it as text.
    email_verified: email !== undefined && (source.email_verified === true || source.email_verified === 'true'),
    name: nameOf(claims) ?? (more && nameOf(more)) ?? email?.split('@')[0],
    groups: groupsOf(claims[groups_claim]) ?? groupsOf(more?.[groups_claim]),
  }
}

/** Groups of a person that are read at most; a provider with more has to filter them. */
const groupsMax = 1000

/** A list of names, or one name. */
function groupsOf(value: unknown): string[] | undefined {
  if (typeof value === 'string') return [value]
  if (!Array.isArray(value)) return undefined
  return value.filter((one) => typeof one === 'string').slice(0, groupsMax)
}

function emailOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > emailMax || !isCleanText(value)) return undefined
  return /^[^\s@<>\p{C}]+@[^\s@<>\p{C}]+$/u.test(value) ? value : undefined
}

/** What a person is called, cut to what a name may be. */
function nameOf(claims: Record<string, unknown>): string | undefined {
  const parts = [claims.given_name, claims.family_name].filter((part) => typeof part === 'string')
  for (const value of [claims.name, parts.join(' '), claims.preferred_username]) {
    if (typeof value !== 'string') continue
    const name = [
      ...value
        .toWellFormed()
        .replaceAll(/\p{Cc}+/gu, ' ')
        .normalize('NFC')
        .trim(),
    ]
      .slice(0, bounds.user_name)
      .join('')
      .trim()
    if (name !== '') return name
  }
  return undefined
}
