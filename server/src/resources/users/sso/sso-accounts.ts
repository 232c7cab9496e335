import { Problem } from '#contract/core/problems.ts'
import type { Config } from '../../../config/config.ts'
import type { GroupRole, SsoConfig } from '../../../config/config-sso.ts'
import { recordAudit } from '../../../events/audit/audit.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import {
  findAccountByEmail,
  findIdentityOwner,
  holdIdentity,
  insertIdentity,
  touchIdentity,
  verifyEmail,
  type AccountRow,
} from './identities.queries.ts'
import { followRole } from '../follow-role.ts'
import { join, requireOfferTo } from '../join.ts'
import { beginSession, signingIn, type SignedIn, type SignInSource } from '../sign-in/sign-in.ts'
import type { SsoProfile } from './sso-profile.ts'
import { findFirstOrganization, insertMember, insertOrganization, insertUser, type UserRow } from '../users.queries.ts'

/** A user who came back from a provider, with or without an invitation. */
export interface Arrival {
  provider: SsoConfig
  profile: SsoProfile
  invitation?: string | undefined
  signup: Config['signup']
}

/** Signed in, or the account with the same address, whose password is needed first. */
export type SsoOutcome = { signedIn: SignedIn } | { account: AccountRow; email: string }

/**
 * Signs in the user with this issuer and subject; creates an account for a new one, if the operator or an invitation
 * allows it. An address alone never signs in and never links (decision S3): if an account has the same address and both
 * sides have verified it, the user must enter its password; otherwise the sign-in is refused. One transaction locks the
 * identity, so that of two concurrent first sign-ins one creates the account and the other finds it. Throws 403, 404
 * and 409, and audits every refusal.
 */
export async function completeSsoSignIn(sql: Sql, arrival: Arrival, from: SignInSource): Promise<SsoOutcome> {
  try {
    return await sql.begin(async (tx) => {
      checkDomain(arrival)
      await holdIdentity(tx, arrival.profile)
      const owner = await findIdentityOwner(tx, arrival.profile)
      if (owner) return signInOwner(tx, owner, arrival, from)
      const { email } = arrival.profile
      const account = email === undefined ? undefined : await findAccountByEmail(tx, email)
      return account ? await linkAccount(tx, account, arrival) : await makeAccount(tx, arrival, from)
    })
  } catch (error) {
    if (error instanceof Problem) await recordRefusal(sql, arrival.provider, from, reasonOf(error), arrival.profile)
    throw error
  }
}

/** Audits a refused sign-in with a provider, and its reason. */
export async function recordRefusal(
  sql: Sql,
  provider: SsoConfig,
  from: SignInSource,
  reason: string,
  profile?: SsoProfile,
): Promise<void> {
  const owner = profile && (await findIdentityOwner(sql, profile))
  await recordAudit(sql, signingIn(from, null), {
    action: 'user.sign_in_failed',
    target: owner?.id ?? null,
    detail: { method: 'sso', provider: provider.name, reason },
  })
}

function reasonOf({ details, kind }: Problem): string {
  const reason = typeof details === 'object' && details !== null && 'reason' in details ? details.reason : undefined
  return typeof reason === 'string' ? reason : kind
}

/** Throws 403 if the provider is limited to some domains and the address is of another, also for known users. */
export function checkDomain({ provider, profile }: Pick<Arrival, 'provider' | 'profile'>): void {
  const { allowed_domains, label } = provider
  if (allowed_domains.length === 0) return
  const domain = profile.email?.split('@').at(-1)?.toLowerCase()
  if (profile.email_verified && domain !== undefined && allowed_domains.includes(domain)) return
  throw refused(
    'domain_not_allowed',
    `Only people with a verified e-mail address at ${allowed_domains.join(' or ')} may sign in with ${label}.`,
  )
}

async function signInOwner(
  tx: Sql,
  owner: AccountRow & { identity_id: string },
  { provider, profile }: Arrival,
  from: SignInSource,
): Promise<SsoOutcome> {
  if (owner.is_disabled)
    throw refused('account_disabled', 'This account is disabled. Ask the operator of this service.')
  await touchIdentity(tx, owner.identity_id, profile.email)
  await confirmEmail(tx, owner.id, profile, from)
  await followGroups(tx, owner.id, { provider, profile }, from)
  const signedIn = await beginSession(tx, owner, from, { method: 'sso', provider: provider.name })
  if (!signedIn) throw new Error('the account was held since it was read')
  return { signedIn }
}

async function linkAccount(tx: Sql, account: AccountRow, arrival: Arrival): Promise<SsoOutcome> {
  const { profile, provider, invitation } = arrival
  const { email = '' } = profile
  const bothVerified = profile.email_verified && account.email_verified
  if (bothVerified && account.password_hash !== null && !account.is_disabled) return { account, email }
  // Without a verified address the user must not learn that it has an account, unless sign-up would show it too.
  if (!profile.email_verified) {
    if (!mayMakeAccount(arrival)) throw byInvitationOnly()
    if (invitation !== undefined) await requireOfferTo(tx, invitation, email)
  }
  throw emailTaken(email, provider)
}

async function makeAccount(tx: Sql, arrival: Arrival, from: SignInSource): Promise<SsoOutcome> {
  const { provider, profile } = arrival
  const { email, email_verified } = profile
  if (!mayMakeAccount(arrival)) throw byInvitationOnly()
  if (email === undefined)
    throw refused('email_missing', `${provider.label} did not share your e-mail address, which an account needs.`)
  const user = await insertUser(tx, { email, name: profile.name ?? email, password_hash: null, email_verified })
  // Another request has just created it.
  if (!user) throw emailTaken(email, provider)

  const org_id = await joinSomewhere(tx, user, arrival, from)
  const actor = { ...signingIn(from, user.id), org_id }
  await recordAudit(tx, actor, { action: 'user.created', target: user.id, after: user })
  await link(tx, user.id, { provider, profile }, signingIn(from, user.id))
  const account = { id: user.id, email, password_hash: null }
  const signedIn = await beginSession(tx, account, from, { method: 'sso', provider: provider.name })
  if (!signedIn) throw new Error('an account that was just made can sign in')
  return { signedIn }
}

function mayMakeAccount({ invitation, provider, profile, signup }: Arrival): boolean {
  return invitation !== undefined || joiningRole({ provider, profile }) !== undefined || signup === 'open'
}

const rolesByRank: readonly GroupRole[] = ['admin', 'member', 'viewer']

/** The role with which a user joins the first organization; undefined if the user does not join it. */
function joiningRole({ provider, profile }: Pick<Arrival, 'provider' | 'profile'>): GroupRole | undefined {
  return roleByGroups(provider, profile) ?? provider.join_as
}

/** The highest role that a user's groups give; undefined if none gives one. */
function roleByGroups({ group_roles }: SsoConfig, { groups = [] }: SsoProfile): GroupRole | undefined {
  const given = new Set(groups.map((group) => group_roles.get(group)))
  return rolesByRank.find((role) => given.has(role))
}

/**
 * Updates a user's role in the first organization from the groups at sign-in. A user who is no longer in any of the
 * groups gets the role for users without groups, else `viewer`. If the provider sends no groups, nothing changes.
 */
export async function followGroups(
  tx: Sql,
  user_id: string,
  { provider, profile }: Pick<Arrival, 'provider' | 'profile'>,
  from: SignInSource,
): Promise<void> {
  if (provider.group_roles.size === 0 || profile.groups === undefined) return
  const org_id = await findFirstOrganization(tx)
  if (org_id === undefined) return
  const changed = await followRole(tx, { org_id, user_id }, joiningRole({ provider, profile }) ?? 'viewer')
  if (!changed) return
  const { before, after, invitations_revoked } = changed
  await recordAudit(
    tx,
    { ...signingIn(from, user_id), org_id },
    {
      action: 'member.updated',
      target: user_id,
      before: { role: before.role },
      after: { role: after.role },
      detail: { provider: provider.name, invitations_revoked },
    },
  )
}

/** The organization of a new account: the invitation's, the first one, or a new one (decision D62). */
async function joinSomewhere(
  tx: Sql,
  user: UserRow,
  { invitation, provider, profile }: Arrival,
  from: SignInSource,
): Promise<string> {
  const actor = signingIn(from, user.id)
  if (invitation !== undefined) return (await join(tx, invitation, user.id, actor)).id
  const role = joiningRole({ provider, profile })
  if (role === undefined) return (await insertOrganization(tx, `${user.name}'s organization`, user.id)).id

  const org_id = await findFirstOrganization(tx)
  if (org_id === undefined) throw refused('organization_missing', 'There is no organization to join.')
  await insertMember(tx, { org_id, user_id: user.id, role })
  await recordAudit(
    tx,
    { ...actor, org_id },
    { action: 'member.added', target: user.id, after: { role }, detail: { provider: provider.name } },
  )
  return org_id
}

/** Links a locked, unlinked identity with a user, and audits it; throws 409 if the user has as many as allowed. */
export async function link(
  tx: Sql,
  user_id: string,
  { provider, profile }: Pick<Arrival, 'provider' | 'profile'>,
  actor: Parameters<typeof recordAudit>[1],
): Promise<void> {
  const { issuer, subject, email } = profile
  const inserted = await insertIdentity(tx, user_id, profile, email)
  if (inserted === 'taken') throw new Error('a locked, unlinked identity cannot be linked')
  if (inserted === 'full') {
    throw conflict('identities_full', 'Your account already has as many linked identities as allowed.', {
      resource_type: 'identity',
      conflicting_field: 'user_id',
      conflicting_value: user_id,
    })
  }
  const after = { provider: provider.name, issuer, subject, email: email ?? null }
  await recordAudit(tx, actor, { action: 'identity.linked', target: inserted.id, after })
}

/** Marks an account's address as verified if the provider has verified it, and audits the change. */
export async function confirmEmail(tx: Sql, user_id: string, profile: SsoProfile, from: SignInSource): Promise<void> {
  if (!profile.email_verified || profile.email === undefined) return
  if (!(await verifyEmail(tx, user_id, profile.email))) return
  await recordAudit(tx, signingIn(from, user_id), {
    action: 'user.updated',
    target: user_id,
    before: { email_verified: false },
    after: { email_verified: true },
  })
}

function byInvitationOnly(): Problem {
  return refused(
    'accounts_by_invitation',
    'Accounts are by invitation only. If you already have an account, sign in the way you did before.',
  )
}

/** 409: the address belongs to an account, and the address alone does not prove that it is the user's. */
export function emailTaken(email: string, { label }: SsoConfig): Problem {
  return conflict(
    'email_taken',
    `An account with the e-mail address ${email} already exists. Sign in the way you did before, then connect ${label}.`,
    { resource_type: 'user', conflicting_field: 'email', conflicting_value: email },
  )
}

/** Refuses a sign-in; `reason` is for programs and the audit log. */
function refused(reason: string, message: string): Problem {
  return new Problem('insufficient_permissions', { reason }, { message })
}

/** A `resource_conflict` with a reason. */
export function conflict(reason: string, message: string, details: object): Problem {
  return new Problem('resource_conflict', { ...details, reason }, { message })
}
