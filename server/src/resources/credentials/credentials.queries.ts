import { notFound, Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Role } from '#contract/core/scopes.ts'
import type { CredentialState, CredentialType } from '#contract/resources/credential-states.ts'
import type { OAuthSettings } from '../../engine/credentials/oauth-settings.ts'
import { writeUniqueName, type UniqueName } from '../../platform/postgres/constraints.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'

/** A credential without its value. */
export interface CredentialRow {
  id: string
  project_id: number
  name: string
  type: CredentialType
  allowed_hosts: readonly string[] | null
  created_by: string
  created_at: string
  updated_at: string
  /** Ids of the secret keys with which its stored values are encrypted. */
  key_ids: string[]
  /** For type `oauth2`. */
  oauth: OAuthState | null
  /** Tools that use it, by name. */
  used_by: { tool_id: string; name: string }[]
}

/** State of a credential's tokens, with its OAuth settings. */
export interface OAuthState {
  settings: OAuthSettings
  status: CredentialState
  error: { code: string; message: string } | null
  expires_at: string | null
  connected_at: string | null
}

/** Key of a credential within its project. */
export interface CredentialKey {
  id: string
  project_id: number
}

/** SQL for `used_by`: the tools of the project that use a credential with this name. */
const usedBy = (sql: Sql, project_id: Fragment, name: Fragment) => sql.fragment`
  coalesce((select json_agg(json_build_object('tool_id', t.id, 'name', t.name) order by t.name) from tool t
    where t.project_id = ${project_id} and position('$' || '{credentials.' || ${name} || '}'
      in concat(t.definition ->> 'url', t.definition ->> 'base_url', t.definition -> 'headers')) > 0), '[]') as used_by`

/**
 * The id of the secret key is in the second to fifth byte of an encrypted value. For type `oauth2`, `value` is empty.
 */
const own = (sql: Sql) => sql.fragment`
  id, project_id, name, type, allowed_hosts, created_by, created_at, updated_at,
  array_remove(array[encode(nullif(substring(value from 2 for 4), ''), 'hex')], null) as key_ids,
  ${usedBy(sql, sql.fragment`credential.project_id`, sql.fragment`credential.name`)}`

/** Columns of a credential `c` for `CredentialRow`. */
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
 * A credential of a project; throws 404 if it does not exist. With `lock` its row is locked until the transaction
 * ends.
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

/** The content of a stored credential: its encrypted value and its allowed hosts. */
export interface NewCredentialContent {
  name: string
  type: CredentialType
  value: Buffer
  allowed_hosts: readonly string[]
  created_by: string
}

/**
 * Inserts a credential, whose value is encrypted with its id as associated data. Throws `resource_conflict` for a
 * taken name, or if the project has too many.
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
      { message: `A project may have at most ${credentialsMax} credentials.` },
    )
  })
}

/** Changes the given members; throws 404 if the credential does not exist. */
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

/** Deletes a credential; returns false if it did not exist. */
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

/** Inserts the OAuth settings of a new credential of type `oauth2`, without tokens. */
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

/** A change of a credential's OAuth settings. */
export interface OAuthChange {
  settings: OAuthSettings
  /** Undefined for no change. */
  client_secret?: Buffer | null | undefined
  /** Whether the tokens become invalid, because they belong to another client or other scopes. */
  dropsTokens: boolean
}

/**
 * Changes the OAuth settings. If the tokens stay, a failed renewal is retried with the new secret; if they are
 * dropped, the results of running renewals are ignored.
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

/** The encrypted client secret; null for a public client, undefined if the credential does not exist. */
export async function findClientSecret(sql: Sql, credential_id: string): Promise<Buffer | null | undefined> {
  const [row] = await sql<{ client_secret: Buffer | null }>`
    select client_secret from credential_oauth where credential_id = ${credential_id}`
  return row?.client_secret
}

/**
 * Stores the discovered issuer of an MCP server and the registration there, unless the credential was changed in the
 * meantime.
 */
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

/** Stores the tokens of an authorization. Results of running renewals of earlier tokens are ignored. */
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

/** The role of a user in an organization; undefined if the user is not a member. */
export async function findRole(sql: Sql, org_id: string, user_id: string): Promise<Role | undefined> {
  const [row] = await sql<{ role: Role }>`select role from member where org_id = ${org_id} and user_id = ${user_id}`
  return row?.role
}

/** Project and organization of a credential. */
export async function findPlace(sql: Sql, id: string): Promise<{ project_id: number; org_id: string } | undefined> {
  const [row] = await sql<{ project_id: number; org_id: string }>`
    select c.project_id, p.org_id from credential c join project p on p.id = c.project_id where c.id = ${id}`
  return row
}

/**
 * A credential in a response. `reads` tells which secret keys the service has; a credential with another key is
 * `unreadable`.
 */
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
  message: 'The credential was encrypted with another CADRE_SECRET_KEY. Set it or connect it again.',
}

/**
 * Sets the allowed hosts of a credential that has none yet. Returns its id, or undefined if it has hosts already.
 * Concurrent statements for the credential wait for each other.
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

/** The allowed hosts of the project's credentials with these names; null for any host. */
export async function listAllowedHosts(
  sql: Sql,
  project_id: number,
  names: readonly string[],
): Promise<Map<string, readonly string[] | null>> {
  const rows = await sql<{ name: string; allowed_hosts: string[] | null }>`
    select name, allowed_hosts from credential where project_id = ${project_id} and name = any(${[...names]})`
  return new Map(rows.map(({ name, allowed_hosts }) => [name, allowed_hosts]))
}
