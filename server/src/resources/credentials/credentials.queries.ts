import { notFound, Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import { writeUniqueName, type UniqueName } from '../../platform/postgres/constraints.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** A credential as it is answered: everything but its value. */
export interface CredentialRow {
  id: string
  project_id: number
  name: string
  created_by: string
  created_at: string
  updated_at: string
}

/** Names a credential by its own and its project's identifier: another project's does not exist. */
export interface CredentialKey {
  id: string
  project_id: number
}

const columns = (sql: Sql) => sql.fragment`id, project_id, name, created_by, created_at, updated_at`

/**
 * A credential of a project; throws 404 for a missing one. With `lock` it cannot change for the rest of the
 * transaction.
 */
export async function requireCredential(
  sql: Sql,
  { id, project_id }: CredentialKey,
  { lock = false } = {},
): Promise<CredentialRow> {
  const [row] = isId('cred', id)
    ? await sql.run<CredentialRow>(sql.fragment`
        select ${columns(sql)} from credential where id = ${id} and project_id = ${project_id}
        ${lock ? sql.fragment`for update` : sql.fragment``}`)
    : []
  if (!row) throw notFound('credential_not_found', 'credential', id.slice(0, 100))
  return row
}

/**
 * Keeps a credential, its value encrypted with its id as associated data. A name that is taken, and one credential more
 * than a project may have, are `resource_conflict`.
 */
export async function insertCredential(
  sql: Sql,
  { id, project_id }: CredentialKey,
  { name, value, created_by }: { name: string; value: Buffer; created_by: string },
  credentialsMax: number,
): Promise<CredentialRow> {
  return writeUniqueName(sql, uniqueName(sql, project_id, name), async (tx) => {
    const [row] = await tx.run<CredentialRow>(tx.fragment`
      insert into credential (id, project_id, name, value, created_by)
      select ${id}, ${project_id}, ${name}, ${value}, ${created_by}
      where (select count(*) from credential where project_id = ${project_id}) < ${credentialsMax}
      returning ${columns(tx)}`)
    if (row) return row
    throw new Problem(
      'resource_conflict',
      { resource_type: 'project', resource_id: projectId(project_id) },
      { message: `A project has ${credentialsMax} credentials at most.` },
    )
  })
}

/** Changes the name or the value of a credential, or both; throws 404 where it is missing. */
export async function updateCredential(
  sql: Sql,
  { id, project_id, name: old }: CredentialRow,
  { name = old, value }: { name?: string | undefined; value?: Buffer | undefined },
): Promise<CredentialRow> {
  return writeUniqueName(sql, uniqueName(sql, project_id, name), async (tx) => {
    const [row] = await tx.run<CredentialRow>(tx.fragment`
      update credential set name = ${name}, value = coalesce(${value ?? null}::bytea, value),
        updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${id} and project_id = ${project_id}
      returning ${columns(tx)}`)
    if (!row) throw notFound('credential_not_found', 'credential', id)
    return row
  })
}

/** Removes a credential; false where it was gone already. */
export async function deleteCredential(sql: Sql, { id, project_id }: CredentialKey): Promise<boolean> {
  const rows = await sql`delete from credential where id = ${id} and project_id = ${project_id} returning id`
  return rows.length > 0
}

/** A page of a project's credentials, newest first. */
export async function listCredentials(
  sql: Sql,
  { project_id, limit, offset }: { project_id: number; limit: number; offset: number },
): Promise<{ credentials: CredentialRow[]; total: number }> {
  const [count] = await sql<{ total: number }>`
    select count(*) as total from credential where project_id = ${project_id}`
  const credentials = await sql.run<CredentialRow>(sql.fragment`
    select ${columns(sql)} from credential where project_id = ${project_id}
    order by id desc limit ${limit} offset ${offset}`)
  return { credentials, total: count?.total ?? 0 }
}

function uniqueName(sql: Sql, project_id: number, name: string): UniqueName {
  const findId = async (): Promise<string | undefined> => {
    const [row] = await sql<{
      id: string
    }>`select id from credential where project_id = ${project_id} and name = ${name}`
    return row?.id
  }
  return { resource_type: 'credential', name, owner: { resource_type: 'project', id: projectId(project_id) }, findId }
}

/** A credential as it is answered. */
export function credentialView({ project_id, ...row }: CredentialRow) {
  return { ...row, project_id: projectId(project_id) }
}
