import type { Role } from '#contract/core/scopes.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** An organization as one of its members sees it. */
export interface OrganizationRow {
  id: string
  name: string
  created_at: string
  updated_at: string
  role: Role
  member_count: number
  /** Whether members may grant access to apps that are identified by their metadata document. */
  client_documents: boolean
}

/** An organization as a member sees it; undefined if the user is not a member. */
export async function findOrganization(
  sql: Sql,
  org_id: string,
  user_id: string,
): Promise<OrganizationRow | undefined> {
  const [row] = await sql<OrganizationRow>`
    select o.id, o.name, o.created_at, o.updated_at, o.client_documents, m.role,
      (select count(*) from member all_of where all_of.org_id = o.id) as member_count
    from organization o join member m on m.org_id = o.id and m.user_id = ${user_id}
    where o.id = ${org_id}`
  return row
}

/** A change of an organization. */
export interface OrganizationChange {
  name: string | undefined
  client_documents: boolean | undefined
}

/** Changes an organization; `updated_at` always increases. */
export async function updateOrganization(
  tx: Sql,
  org_id: string,
  { name, client_documents }: OrganizationChange,
): Promise<void> {
  await tx`
    update organization set name = coalesce(${name ?? null}, name),
      client_documents = coalesce(${client_documents ?? null}::boolean, client_documents), updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${org_id}`
}

/** Number of organizations that a user owns, and that they administer as owner or admin. */
export async function countAdministered(sql: Sql, user_id: string): Promise<{ owned: number; administered: number }> {
  const [row] = await sql<{ owned: number; administered: number }>`
    select count(*) filter (where role = 'owner') as owned, count(*) as administered
    from member where user_id = ${user_id} and role in ('owner', 'admin')`
  return row!
}

/**
 * Locks the members of an organization and their roles until the transaction ends, so that the last two owners cannot
 * leave at the same time. Lock order: organization before user (`holdUser`).
 */
export async function holdOrganization(tx: Sql, org_id: string): Promise<void> {
  await tx`select 1 from organization where id = ${org_id} for no key update`
}

/** Locks a user, so that they cannot leave another organization at the same time. */
export async function holdUser(tx: Sql, user_id: string): Promise<void> {
  await tx`select 1 from app_user where id = ${user_id} for no key update`
}
