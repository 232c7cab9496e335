import type { IDToken, UserInfoResponse } from 'openid-client'
import { bounds } from '#contract/core/limits.ts'
import { isCleanText } from '../../../http/validation.ts'
import { SsoFailure } from './sso-failure.ts'

/** A user's profile at an identity provider, validated. */
export interface SsoProfile {
  issuer: string
  /** Permanent identifier of the account there, compared byte for byte. */
  subject: string
  /** Undefined if the provider sends none, or one that is not valid. */
  email: string | undefined
  /** Whether the provider has verified that the address is the user's. */
  email_verified: boolean
  name: string | undefined
  /** Groups of the user; undefined if the provider sends none. */
  groups?: readonly string[] | undefined
}

/** The longest subject that OpenID Connect allows (Core §2). */
const subjectMax = 255
const emailMax = 254

type Claims = Pick<IDToken, 'iss' | 'sub'> & Record<string, unknown>

/**
 * Reads a user's profile from the ID token, and from the userinfo response if it was requested. An address and its
 * verification come from the same of the two. Throws `SsoFailure` for an invalid subject.
 */
export function profileOf(claims: Claims, more: UserInfoResponse | undefined, groups_claim = 'groups'): SsoProfile {
  const { iss, sub } = claims
  if (sub === '' || sub.length > subjectMax || !isCleanText(sub) || !isCleanText(iss))
    throw new SsoFailure('unusable', 'the subject or issuer is empty, too long or has characters that are not allowed')
  const source: Record<string, unknown> = more?.email === undefined ? claims : more
  const email = emailOf(source.email)
  return {
    issuer: iss,
    subject: sub,
    email,
    // Some providers send a string instead of a boolean.
    email_verified: email !== undefined && (source.email_verified === true || source.email_verified === 'true'),
    name: nameOf(claims) ?? (more && nameOf(more)) ?? email?.split('@')[0],
    groups: groupsOf(claims[groups_claim]) ?? groupsOf(more?.[groups_claim]),
  }
}

/** Most groups of a user that are read; a provider with more must filter them. */
const groupsMax = 1000

/** Group names from a list, or from a single name. */
function groupsOf(value: unknown): string[] | undefined {
  if (typeof value === 'string') return [value]
  if (!Array.isArray(value)) return undefined
  return value.filter((one) => typeof one === 'string').slice(0, groupsMax)
}

function emailOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > emailMax || !isCleanText(value)) return undefined
  return /^[^\s@<>\p{C}]+@[^\s@<>\p{C}]+$/u.test(value) ? value : undefined
}

/** The user's name, cut to the longest that is allowed. */
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
