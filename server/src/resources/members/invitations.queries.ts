import { randomBytes } from 'node:crypto'
import type { InvitationStatus } from '#contract/accounts/invitations.ts'
import { bounds } from '#contract/core/limits.ts'
import type { Role } from '#contract/core/scopes.ts'
import { brokenConstraint, type Sql } from '../../platform/postgres/database.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { newId } from '../../platform/ids.ts'

/** An invitation without its link. */
export interface InvitationRow {
  id: string
  role: Role
  email: string | null
  status: InvitationStatus
  created_by: string
  created_at: string
  expires_at: string
  accepted_at: string | null
  accepted_by: string | null
  revoked_at: string | null
}

/** How many days accepted, revoked and expired invitations are kept, to show how a member joined. */
const kept_days = 90
/** Maximum number of rows per statement, so that a sweep does not block requests for long. */
const sweepBatch = 1000

const columns = (sql: Sql) => sql.fragment`
  i.id, i.role, i.email, ${status(sql)} as status, i.created_by, i.created_at, i.expires_at, i.accepted_at,
  i.accepted_by, i.revoked_at`

const status = (sql: Sql) => sql.fragment`
  case when i.accepted_at is not null then 'accepted' when i.revoked_at is not null then 'revoked'
    when i.expires_at <= now() then 'expired' else 'pending' end`

const isPending = (sql: Sql) => sql.fragment`i.accepted_at is null and i.revoked_at is null and i.expires_at > now()`

/** A new invitation. `created_by` is the inviting user. */
export interface NewInvitation {
  org_id: string
  created_by: string
  role: Role
  email: string | null
  expires_in_seconds: number
}

/**
 * Creates an invitation. `token` has 256 random bits; only its SHA-256 is stored. Returns `forbidden` if the user may
 * not invite for this role, and `full` if too many are pending. The membership of the user is locked, so that an
 * invitation that is created while they lose the right is revoked with the others.
 */
export async function insertInvitation(
  tx: Sql,
  invitation: NewInvitation,
): Promise<{ row: InvitationRow; token: string } | 'forbidden' | 'full'> {
  const { org_id, created_by, role } = invitation
  const [may] = await tx<{ role: Role }>`
    select role from member where org_id = ${org_id} and user_id = ${created_by} for share`
  if (may?.role !== 'owner' && (may?.role !== 'admin' || role === 'owner')) return 'forbidden'
  const token = randomBytes(32).toString('base64url')
  const [row] = await tx.run<InvitationRow>(tx.fragment`
    with room as (
      select count(*) < ${bounds.invitations_pending} as has_room from invitation i where i.org_id = ${org_id} and ${isPending(tx)})
    insert into invitation as i (id, org_id, token_hash, role, email, created_by, expires_at)
    select ${newId('inv')}, ${org_id}, ${hashOf(token)}, ${role}, ${invitation.email}, ${created_by},
      now() + make_interval(secs => ${invitation.expires_in_seconds})
    from room where has_room
    returning ${columns(tx)}`)
  return row ? { row, token } : 'full'
}

/** A page of an organization's invitations, newest first, and their total number. */
export async function listInvitations(
  sql: Sql,
  org_id: string,
  filter: { status?: InvitationStatus | undefined; limit: number; offset: number },
): Promise<{ invitations: InvitationRow[]; total: number }> {
  const where = sql.fragment`
    i.org_id = ${org_id} and (${filter.status ?? null}::text is null or ${status(sql)} = ${filter.status ?? null})`
  const [count] = await sql.run<{ total: number }>(
    sql.fragment`select count(*) as total from invitation i where ${where}`,
  )
  const invitations = await sql.run<InvitationRow>(sql.fragment`
    select ${columns(sql)} from invitation i where ${where}
    order by i.id desc limit ${filter.limit} offset ${filter.offset}`)
  return { invitations, total: count?.total ?? 0 }
}

export async function findInvitation(sql: Sql, org_id: string, id: string): Promise<InvitationRow | undefined> {
  const [row] = await sql.run<InvitationRow>(sql.fragment`
    select ${columns(sql)} from invitation i where i.id = ${id} and i.org_id = ${org_id}`)
  return row
}

/** Revokes a pending invitation; undefined if it is not pending. */
export async function revokeInvitation(tx: Sql, org_id: string, id: string): Promise<InvitationRow | undefined> {
  const [row] = await tx.run<InvitationRow>(tx.fragment`
    update invitation i set revoked_at = now() where i.id = ${id} and i.org_id = ${org_id} and ${isPending(tx)}
    returning ${columns(tx)}`)
  return row
}

/**
 * Revokes the pending invitations of a member, for `owner` or for any role, because a member who may no longer invite
 * must not do so by an older link. Returns their ids.
 */
export async function revokeInvitationsOf(
  tx: Sql,
  org_id: string,
  created_by: string,
  which: 'all' | 'of_owners',
): Promise<string[]> {
  const rows = await tx<{ id: string }>`
    update invitation set revoked_at = now()
    where org_id = ${org_id} and created_by = ${created_by} and accepted_at is null and revoked_at is null
      and expires_at > now() and (${which === 'all'} or role = 'owner')
    returning id`
  return rows.map(({ id }) => id)
}

/** The part of an invitation that is shown to everyone with its link. */
export interface Offer {
  id: string
  org_id: string
  organization: string
  role: Role
  /** The only e-mail address that may accept it; null for any. */
  email: string | null
  /** Name of the inviting user. */
  invited_by: string
  expires_at: string
}

/** The offer of a token; undefined if it is not valid for any reason. */
export async function findOffer(sql: Sql, token: string): Promise<Offer | undefined> {
  const [row] = await sql.run<Offer>(sql.fragment`
    select i.id, i.org_id, o.name as organization, i.role, i.email, u.name as invited_by, i.expires_at
    from invitation i join organization o on o.id = i.org_id join app_user u on u.id = i.created_by
    where i.token_hash = ${hashOf(token)} and ${isPending(sql)}`)
  return row
}

/** The organization that a user joined with this token; undefined if they did not or are no longer a member. */
export async function findJoined(
  sql: Sql,
  token: string,
  user_id: string,
): Promise<{ organization: string; role: Role } | undefined> {
  const [row] = await sql<{ organization: string; role: Role }>`
    select o.name as organization, m.role from invitation i join organization o on o.id = i.org_id
    join member m on m.org_id = i.org_id and m.user_id = i.accepted_by
    where i.token_hash = ${hashOf(token)} and i.accepted_by = ${user_id}`
  return row
}

/** Whether a user is already a member of the offered organization. */
export async function isMemberBy(sql: Sql, { org_id }: Offer, user_id: string): Promise<boolean> {
  const rows = await sql`select 1 from member where org_id = ${org_id} and user_id = ${user_id}`
  return rows.length > 0
}

/** A joined organization as its new member sees it, with the invitation. */
export interface JoinedRow {
  invitation_id: string
  id: string
  name: string
  role: Role
  joined_at: string
}

/**
 * Accepts an invitation: checks the token, adds the user as a member and uses up the token in one statement, so that
 * of two concurrent users exactly one joins. Returns `member` if the user is already a member, and undefined if the
 * token is not valid for this account; then nothing changes.
 */
export async function acceptInvitation(
  tx: Sql,
  token: string,
  user_id: string,
): Promise<JoinedRow | 'member' | undefined> {
  try {
    const [row] = await tx.begin((inner) =>
      inner.run<JoinedRow>(inner.fragment`
        with used as (
          update invitation i set accepted_at = now(), accepted_by = u.id
          from app_user u
          where i.token_hash = ${hashOf(token)} and u.id = ${user_id} and ${isPending(inner)}
            and (i.email is null or lower(i.email) = lower(u.email))
          returning i.id, i.org_id, i.role
        ), joined as (
          insert into member (org_id, user_id, role) select org_id, ${user_id}, role from used
          returning org_id, role, joined_at
        )
        select used.id as invitation_id, o.id, o.name, joined.role, joined.joined_at
        from used, joined join organization o on o.id = joined.org_id`),
    )
    return row
  } catch (error) {
    // The rollback includes the use of the token, which stays valid for another user.
    if (brokenConstraint(error) === 'member_pkey') return 'member'
    throw error
  }
}

/** Removes invitations that ended more than 90 days ago, in batches; returns their number. */
export async function sweepInvitations(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from invitation where id in (
      select id from invitation
      where coalesce(accepted_at, revoked_at, expires_at) < now() - make_interval(days => ${kept_days}) limit ${sweepBatch})
    returning id`
  return deleted.length
}
