import { notFound } from '#contract/core/problems.ts'
import type { Context } from '../../../context.ts'
import type { SsoConfig } from '../../../config/config-sso.ts'
import { formTokens } from '../../../http/pages/form-token.ts'
import type { HttpContext } from '../../../http/http-context.ts'
import { encryptedState, type EncryptedState } from '../../../http/pages/encrypted-state.ts'
import type { Pages } from '../pages.ts'
import type { SignInContext } from '../sign-in/sign-in.ts'
import { attemptLife_seconds, ssoAttempts, type SsoAttempt, type SsoAttempts } from './sso-attempt.ts'
import { makeSsoClient, type SsoClient } from './sso-client.ts'
import { ssoFailure, ssoProblem } from './sso-failure.ts'
import type { Proof, ProvidersByIssuer } from './sso-links.ts'

/** Dependencies of signing in with identity providers. */
export interface Sso extends Pages {
  client: SsoClient
  attempts: SsoAttempts
  /** Proven identities, while the user enters the password of the account. */
  proofs: EncryptedState<Proof>
}

export function makeSso(http: HttpContext, context: Context, signing: SignInContext): Sso {
  const secure = (): boolean => context.public_url().startsWith('https:')
  return {
    http,
    context,
    signing,
    secure,
    tokens: formTokens(context.secrets),
    client: makeSsoClient(context.egress),
    attempts: ssoAttempts(context.secrets, context.public_url),
    proofs: encryptedState<Proof>(context.secrets, 'sso proof', attemptLife_seconds),
  }
}

/** The provider with this name; throws 404 if it does not exist. */
export function requireProvider({ context }: Sso, name = ''): SsoConfig {
  const provider = context.config.sso.find((provider) => provider.name === name)
  if (!provider) throw notFound('sso_provider_not_found', 'sso_provider', name.slice(0, 100).toWellFormed())
  return provider
}

export function providersOf({ context }: Pick<Sso, 'context'>): ProvidersByIssuer {
  const { sso } = context.config
  return {
    issuers: sso.flatMap(issuerForms),
    nameOf: (issuer) => sso.find((provider) => issuerForms(provider).includes(issuer))?.name ?? null,
  }
}

/** The issuer with and without a final slash: the configured form may differ from the one that the provider uses. */
function issuerForms({ issuer }: SsoConfig): string[] {
  const { href, pathname, origin } = new URL(issuer)
  return pathname === '/' ? [href, origin] : [issuer]
}

/** The callback URL of a provider. */
export function redirectUri({ context }: Sso, provider: SsoConfig): string {
  return `${context.public_url()}/api/v1/auth/sso/${provider.name}/callback`
}

/** The URL at which a browser signs in at a provider, and the attempt that it must keep. Throws 502 and 504. */
export async function beginAt(
  sso: Sso,
  provider: SsoConfig,
  attempt: Omit<SsoAttempt, 'checks'>,
  prompt?: string,
): Promise<{ url: string; attempt: SsoAttempt }> {
  try {
    const { url, checks } = await sso.client.begin(provider, redirectUri(sso, provider), prompt)
    return { url, attempt: { ...attempt, checks } }
  } catch (error) {
    throw ssoProblem(ssoFailure(error, true), provider.label)
  }
}
