import { notFound, Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Role } from '#contract/core/scopes.ts'
import type { CredentialState, CredentialType } from '#contract/resources/credential-states.ts'
import type { OAuthSettings } from '../../engine/credentials/oauth-settings.ts'
import { writeUniqueName, type UniqueName } from '../../platform/postgres/constraints.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'

/** A credential as it is answered: everything but its value. */
export interface CredentialRow {
  id: string
  project_id: number
  name: string
  type: CredentialType
  allowed_hosts: readonly string[] | null
  created_by: string
  created_at: string
  updated_at: string
  /** Ids of the secret keys that what is stored of it was encrypted with. */
  key_ids: string[]
  /** Of type `oauth2`. */
  oauth: OAuthState | null
  /** Tools that name it, by name. */
  used_by: { tool_id: string; name: string }[]
}

/** What is known of the tokens of a credential, and what they are asked with. */
export interface OAuthState {
  settings: OAuthSettings
  status: CredentialState
  error: { code: string; message: string } | null
  expires_at: string | null
  connected_at: string | null
}

/** Names a credential by its own and its project's identifier: another project's does not exist. */
export interface CredentialKey {
  id: string
  project_id: number
}

/** Tools of the project that name a credential of this project and name, as a member `used_by` of its row. */
const usedBy = (sql: Sql, project_id: Fragment, name: Fragment) => sql.fragment`
  coalesce((select json_agg(json_build_object('tool_id', t.id, 'name', t.name) order by t.name) from tool t
    where t.project_id = ${project_id} and position('$' || '{credentials.' || ${name} || '}'
      in concat(t.definition ->> 'url', t.definition ->> 'base_url', t.definition -> 'headers')) > 0), '[]') as used_by`

/** The id of the secret key is the second to fifth byte of what was encrypted with it; of type `oauth2` the value is empty. */
const own = (sql: Sql) => sql.fragment`
  id, project_id, name, type, allowed_hosts, created_by, created_at, updated_at,
  array_remove(array[encode(nullif(substring(value from 2 for 4), ''), 'hex')], null) as key_ids,
  ${usedBy(sql, sql.fragment`credential.project_id`, sql.fragment`credential.name`)}`

/** Of the credential of a row \`c\`: as it is answered. */
const columns = (
  sql: Sql,
) => sql.fragment`${usedBy(sql, sql.fragment`c.project_id`, sql.fragment`c.name`)}, c.id, c.project_id, c.name, c.type, c.allowed_hosts, c.created_by, c.created_at, c.updated_at,
  array_remove(array[encode(nullif(substring(c.value from 2 for 4), ''), 'hex')] || (
    select array[encode(substring(o.tokens from 2 for 4), 'hex'), encode(substring(o.client_secret from 2 for 4), 'hex')]
    from credential_oauth o where o.credential_id = c.id), null) as key_ids,
  (select jsonb_build_object('settings', o.settings, 'status', o.status, 'error', o.error,
    'expires_at', to_char(o.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'connected_at', to_char(o.connected_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    from credential_oauth o where o.credential_id = c.id) as oauth`

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
        select ${columns(sql)} from credential c where c.id = ${id} and c.project_id = ${project_id}
        ${lock ? sql.fragment`for update of c` : sql.fragment``}`)
    : []
  if (!row) throw notFound('credential_not_found', 'credential', id.slice(0, 100))
  return row
}

/** A credential that is kept: its value encrypted, and where it may be sent. */
export interface NewCredentialContent {
  name: string
  type: CredentialType
  value: Buffer
  allowed_hosts: readonly string[]
  created_by: string
}

/**
 * Keeps a credential, its value encrypted with its id as associated data. A name that is taken, and one credential more
 * than a project may have, are `resource_conflict`.
 */
export async function insertCredential(
  sql: Sql,
  { id, project_id }: CredentialKey,
  { name, type, value, allowed_hosts, created_by }: NewCredentialContent,
  credentialsMax: number,
): Promise<CredentialRow> {
  return writeUniqueName(sql, uniqueName(sql, project_id, name), async (tx) => {
    const [row] = await tx.run<Omit<CredentialRow, 'oauth'>>(tx.fragment`
      insert into credential (id, project_id, name, type, value, allowed_hosts, created_by)
      select ${id}, ${project_id}, ${name}, ${type}, ${value}, ${[...allowed_hosts]}::text[], ${created_by}
      where (select count(*) from credential where project_id = ${project_id}) < ${credentialsMax}
      returning ${own(tx)}`)
    if (row) return { ...row, oauth: null }
    throw new Problem(
      'resource_conflict',
      { resource_type: 'project', resource_id: projectId(project_id) },
      { message: `A project has ${credentialsMax} credentials at most.` },
    )
  })
}

/** Changes what is given of a credential; throws 404 where it is missing. */
export async function updateCredential(
  sql: Sql,
  { id, project_id, name: old }: CredentialRow,
  {
    name = old,
    value,
    allowed_hosts,
  }: { name?: string | undefined; value?: Buffer | undefined; allowed_hosts?: readonly string[] | undefined },
): Promise<CredentialRow> {
  return writeUniqueName(sql, uniqueName(sql, project_id, name), async (tx) => {
    const [row] = await tx.run<CredentialRow>(tx.fragment`
      update credential c set name = ${name}, value = coalesce(${value ?? null}::bytea, value),
        allowed_hosts = coalesce(${allowed_hosts ? [...allowed_hosts] : null}::text[], allowed_hosts),
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
  {
    project_id,
    status,
    limit,
    offset,
  }: { project_id: number; status?: CredentialState | undefined; limit: number; offset: number },
): Promise<{ credentials: CredentialRow[]; total: number }> {
  const { fragment } = sql
  const where = fragment`c.project_id = ${project_id} and (${status ?? null}::text is null
    or exists (select from credential_oauth s where s.credential_id = c.id and s.status = ${status ?? null}))`
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from credential c where ${where}`)
  const credentials = await sql.run<CredentialRow>(sql.fragment`
    select ${columns(sql)} from credential c where ${where}
    order by c.id desc limit ${limit} offset ${offset}`)
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

/** What an issuer is asked for, of a new credential of type `oauth2`. It has no tokens yet. */
export async function insertOAuth(
  tx: Sql,
  credential_id: string,
  settings: OAuthSettings,
  client_secret: Buffer | undefined,
): Promise<void> {
  await tx`
    insert into credential_oauth (credential_id, settings, client_secret)
    values (${credential_id}, ${jsonb(settings)}, ${client_secret ?? null})`
}

/** What is to be asked for from now on, and by which client. */
export interface OAuthChange {
  settings: OAuthSettings
  /** Undefined where it stays. */
  client_secret?: Buffer | null | undefined
  /** The tokens are those of another client, or for other scopes. */
  dropsTokens: boolean
}

/**
 * Changes what an issuer is asked for. Tokens that stay are tried again, with the new secret; renewals that are under way do not
 * count where they are dropped.
 */
export async function updateOAuth(
  tx: Sql,
  credential_id: string,
  { settings, client_secret, dropsTokens }: OAuthChange,
): Promise<void> {
  await tx`
    update credential_oauth set settings = ${jsonb(settings)},
      client_secret = case when ${client_secret !== undefined} then ${client_secret ?? null}::bytea else client_secret end,
      status = case when ${dropsTokens} or tokens is null then 'needs_authorization' else 'connected' end,
      error = null, failures = 0, retry_at = null,
      generation = generation + ${dropsTokens ? 1 : 0}, tokens = case when ${dropsTokens} then null else tokens end,
      expires_at = case when ${dropsTokens} then null else expires_at end,
      renew_at = case when ${dropsTokens} then null else renew_at end,
      lease = case when ${dropsTokens} then null else lease end,
      leased_until = case when ${dropsTokens} then null else leased_until end
    where credential_id = ${credential_id}`
}

/** The client's secret, encrypted; null of a public client, undefined where the credential is gone. */
export async function findClientSecret(sql: Sql, credential_id: string): Promise<Buffer | null | undefined> {
  const [row] = await sql<{ client_secret: Buffer | null }>`
    select client_secret from credential_oauth where credential_id = ${credential_id}`
  return row?.client_secret
}

/** Keeps what was found out of the issuer of an MCP server, and of this service there; not where the credential was changed meanwhile. */
export async function keepDiscovery(
  sql: Sql,
  credential_id: string,
  before: OAuthSettings,
  { settings, client_secret }: { settings: OAuthSettings; client_secret: Buffer | null | undefined },
): Promise<boolean> {
  const rows = await sql`
    update credential_oauth set settings = ${jsonb(settings)},
      client_secret = case when ${client_secret !== undefined} then ${client_secret ?? null}::bytea else client_secret end
    where credential_id = ${credential_id} and settings = ${jsonb(before)}::jsonb returning credential_id`
  return rows.length > 0
}

/** The tokens that a person has got us, from now on; renewals of earlier ones that are under way do not count. */
export async function connectOAuth(
  tx: Sql,
  credential_id: string,
  settings: OAuthSettings,
  { tokens, expires_in }: { tokens: Buffer; expires_in: number | null },
): Promise<boolean> {
  const rows = await tx`
    update credential_oauth set tokens = ${tokens}, generation = generation + 1, status = 'connected', error = null, lease = null,
      leased_until = null, failures = 0, retry_at = null, rotates = null, connected_at = now(),
      expires_at = now() + make_interval(secs => ${expires_in}::float8),
      renew_at = now() + make_interval(secs => ${expires_in}::float8 - least(60, ${expires_in}::float8 / 5))
    where credential_id = ${credential_id} and settings = ${jsonb(settings)}::jsonb returning credential_id`
  return rows.length > 0
}

/** The role of a user in an organization; undefined where they are no member. */
export async function findRole(sql: Sql, org_id: string, user_id: string): Promise<Role | undefined> {
  const [row] = await sql<{ role: Role }>`select role from member where org_id = ${org_id} and user_id = ${user_id}`
  return row?.role
}

/** The project of a credential and the organization of that. */
export async function findPlace(sql: Sql, id: string): Promise<{ project_id: number; org_id: string } | undefined> {
  const [row] = await sql<{ project_id: number; org_id: string }>`
    select c.project_id, p.org_id from credential c join project p on p.id = c.project_id where c.id = ${id}`
  return row
}

/** A credential as it is answered; `reads` says which secret keys the service has: with another one it cannot be read. */
export function credentialView({ project_id, oauth, key_ids, ...row }: CredentialRow, reads: Secrets['reads']) {
  const unreadable: { status?: CredentialState; error?: OAuthState['error'] } = key_ids.every(reads)
    ? {}
    : { status: 'unreadable', error: unreadableError }
  const view = { ...row, project_id: projectId(project_id) }
  if (!oauth) return { ...view, ...unreadable }
  const { settings, ...state } = oauth
  const { resource: _resource, registered_for: _registeredFor, ...asked } = settings
  return { ...view, ...state, ...asked, ...unreadable }
}

const unreadableError = {
  code: 'secret_unreadable',
  message: 'It was stored with another CADRE_SECRET_KEY. Set it again, or connect it again.',
}

/**
 * Binds a credential that names no host yet to hosts; gives its id, or undefined where it has some by now. The statement waits for others
 * that bind it.
 */
export async function bindHosts(
  sql: Sql,
  project_id: number,
  name: string,
  hosts: readonly string[],
): Promise<string | undefined> {
  const [row] = await sql<{ id: string }>`
    update credential set allowed_hosts = ${[...hosts]}::text[], updated_at = now()
    where project_id = ${project_id} and name = ${name} and cardinality(allowed_hosts) = 0 returning id`
  return row?.id
}

/** Where the project's credentials of these names may be sent, by their names; null: anywhere. */
export async function listAllowedHosts(
  sql: Sql,
  project_id: number,
  names: readonly string[],
): Promise<Map<string, readonly string[] | null>> {
  const rows = await sql<{ name: string; allowed_hosts: string[] | null }>`
    select name, allowed_hosts from credential where project_id = ${project_id} and name = any(${[...names]})`
  return new Map(rows.map(({ name, allowed_hosts }) => [name, allowed_hosts]))
}
