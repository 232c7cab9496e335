import { createHash, randomBytes } from 'node:crypto'
import type { Role, Scope } from '#contract/core/scopes.ts'
import { newId } from '../src/platform/ids.ts'
import { insertApiKey, newApiKey } from '../src/resources/api-keys/api-keys.queries.ts'
import type { SendOptions, TestService } from './harness.ts'

/** A user in one organization. */
export interface Person {
  user_id: string
  org_id: string
  role: Role
}

/** Credentials that a test sends, as options of `send`. */
export type Credential = Pick<SendOptions, 'key' | 'token' | 'cookie'>

/** The owner that the first start made, as a person. */
export function ownerOf({ owner }: TestService): Person {
  return { user_id: owner.user_id, org_id: owner.org_id, role: 'owner' }
}

/** A new user with this role in an organization: a new one, unless `org_id` says which. */
export async function makePerson(
  { sql }: Pick<TestService, 'sql'>,
  role: Role = 'owner',
  org_id?: string,
): Promise<Person> {
  const user_id = newId('user')
  const organization = org_id ?? newId('org')
  await sql`insert into app_user (id, email, name) values (${user_id}, ${`${user_id}@example.com`}, 'Ada')`
  if (!org_id) await sql`insert into organization (id, name) values (${organization}, 'Analytical Engines')`
  await sql`insert into member (org_id, user_id, role) values (${organization}, ${user_id}, ${role})`
  return { user_id, org_id: organization, role }
}

/** An API key of a person's with exactly these scopes. */
export async function makeKey(
  { sql }: Pick<TestService, 'sql'>,
  person: Person,
  scopes: Scope[],
  expires_at: string | null = null,
): Promise<{ id: string; key: string }> {
  const key = newApiKey()
  const { id } = await insertApiKey(sql, person, key, { name: 'test', description: '', scopes, expires_at })
  return { id, key }
}

/** A cookie session of a person's; `cookie` is what a browser would send. */
export async function makeSession(
  { sql, service }: TestService,
  person: Person,
): Promise<{ id: string; cookie: string }> {
  const id = newId('sess')
  const secret = randomBytes(32).toString('base64url')
  await sql`
    insert into session (id, secret_hash, user_id, idle_expires_at, expires_at, ip, user_agent)
    values (${id}, ${sha256(secret)}, ${person.user_id}, now() + interval '7 days', now() + interval '30 days', '127.0.0.1', 'test')`
  return { id, cookie: `cadre_session=${service.app.signCookie(secret)}` }
}

/** An OAuth grant of a person's to the first client, with an access token for it. */
export async function makeToken(
  { sql, owner }: TestService,
  person: Person,
  scopes: Scope[],
  expires_at: string = new Date(Date.now() + 3_600_000).toISOString(),
): Promise<{ grant_id: string; token: string }> {
  const grant_id = newId('sess')
  const token = randomBytes(32).toString('base64url')
  await sql`
    insert into oauth_grant (id, user_id, org_id, client_id, scopes, expires_at, ip, user_agent)
    values (${grant_id}, ${person.user_id}, ${person.org_id}, ${owner.oauth_client_id}, ${scopes}, now() + interval '30 days', '127.0.0.1', 'test')`
  await sql`
    insert into oauth_artifact (kind, id, grant_id, payload, expires_at)
    values ('AccessToken', ${sha256(token)}, ${grant_id}, ${JSON.stringify({ scope: scopes.join(' ') })}, ${expires_at})`
  return { grant_id, token }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
