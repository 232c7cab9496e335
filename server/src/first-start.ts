import { randomInt } from 'node:crypto'
import { scopes } from '#contract/core/scopes.ts'
import type { Config } from './config/config.ts'
import { systemActor, recordAudit } from './events/audit/audit.ts'
import type { Sql } from './platform/postgres/database.ts'
import { createPasswords } from './platform/crypto/passwords.ts'
import { insertApiKey, newApiKey } from './resources/api-keys/api-keys.queries.ts'
import { insertClient, newClientSecret } from './resources/oauth/oauth-clients.queries.ts'
import { insertOrganization, insertUser, isWithoutUsers } from './resources/users/users.queries.ts'

/** The first owner of a service, with configured and generated secrets in plain text, to be shown once (decision D69). */
export interface FirstOwner {
  user_id: string
  org_id: string
  email: string
  password: string
  /** With scope `admin`. */
  api_key: string
  oauth_client_id: string
  oauth_client_secret: string
  oauth_redirect_uri: string
  /** The members above that were generated because they are not configured. */
  generated: string[]
}

export type FirstStartConfig = Pick<
  Config,
  'admin_email' | 'admin_password' | 'admin_api_key' | 'oauth_client_id' | 'oauth_client_secret' | 'oauth_redirect_uri'
>

export interface FirstStart {
  sql: Sql
  config: FirstStartConfig
  /** Called before the commit, to store the credentials: a crash must not lose the only copy. */
  keep?: ((owner: FirstOwner) => Promise<void>) | undefined
}

/**
 * Default redirect URIs of the first client, for an app on the owner's machine. The client is then a native one, so any port
 * is allowed (RFC 8252 §7.3).
 */
const loopbackRedirect = 'http://127.0.0.1/callback'
const loopbackRedirects = [loopbackRedirect, 'http://localhost/callback']

/**
 * Creates the first owner, an organization, an API key with scope `admin` and a confidential OAuth client in an empty
 * database (decision D69). Returns undefined if there are users already. Of processes that start at the same time one
 * creates them, and the others wait.
 */
export async function createFirstOwner({ sql, config, keep }: FirstStart): Promise<FirstOwner | undefined> {
  if (!(await isWithoutUsers(sql))) return undefined
  const owner = firstValues(config)
  const password_hash = await createPasswords().hash(owner.password)

  return sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtext('cadre first start'))`
    if (!(await isWithoutUsers(tx))) return undefined
    const user = await insertUser(tx, { email: owner.email, name: 'Owner', password_hash })
    if (!user) throw new Error('the e-mail address is taken in an empty database')
    const organization = await insertOrganization(tx, 'My organization', user.id)
    const whose = { user_id: user.id, org_id: organization.id }
    const key = await insertApiKey(tx, whose, owner.api_key, {
      name: 'First key',
      description: 'Made at the first start.',
      scopes: ['admin'],
      expires_at: null,
    })
    const client = await insertClient(tx, organization.id, {
      client_id: owner.oauth_client_id,
      name: 'First app',
      secret: owner.oauth_client_secret,
      redirect_uris: config.oauth_redirect_uri === undefined ? loopbackRedirects : [config.oauth_redirect_uri],
      scopes: [...scopes],
      native: config.oauth_redirect_uri === undefined,
    })
    if (!client) throw new Error('the client id is taken in an empty database')
    const { secret_hash: _, ...app } = client
    const made = { ...owner, ...whose }
    const detail = { reason: 'first_start' }
    const actor = systemActor(organization.id)
    await recordAudit(tx, actor, { action: 'user.created', target: user.id, after: user, detail })
    await recordAudit(tx, actor, {
      action: 'organization.created',
      target: organization.id,
      after: { name: organization.name },
      detail: { ...detail, owner: user.id },
    })
    await recordAudit(tx, actor, { action: 'api_key.created', target: key.id, after: key, detail })
    await recordAudit(tx, actor, { action: 'oauth_client.created', target: app.client_id, after: app, detail })
    await keep?.(made)
    return made
  })
}

/** The configured values, and generated ones for the rest. */
function firstValues(config: FirstStartConfig): Omit<FirstOwner, 'user_id' | 'org_id'> {
  const generated: string[] = []
  const value = (name: keyof FirstOwner, given: string | undefined, make: () => string): string => {
    if (given !== undefined) return given
    generated.push(name)
    return make()
  }
  return {
    email: value('email', config.admin_email, () => 'owner@cadre.local'),
    password: value('password', config.admin_password, newPassword),
    api_key: value('api_key', config.admin_api_key, newApiKey),
    oauth_client_id: value('oauth_client_id', config.oauth_client_id, () => `first-app-${randomText(8)}`),
    oauth_client_secret: value('oauth_client_secret', config.oauth_client_secret, newClientSecret),
    oauth_redirect_uri: value('oauth_redirect_uri', config.oauth_redirect_uri, () => loopbackRedirect),
    generated,
  }
}

/** Makes a password of 100 random bits, in groups that are easy to read aloud: `3kf9x-…`. */
export function newPassword(): string {
  return Array.from({ length: 4 }, () => randomText(5)).join('-')
}

function randomText(length: number): string {
  const letters = '0123456789abcdefghjkmnpqrstvwxyz'
  return Array.from({ length }, () => letters[randomInt(letters.length)]).join('')
}
