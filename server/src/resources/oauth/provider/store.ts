import { AsyncLocalStorage } from 'node:async_hooks'
import type { Adapter, AdapterPayload } from 'oidc-provider'
import { jsonb, type Sql } from '../../../platform/postgres/database.ts'
import { lifetimes } from './lifetimes.ts'
import { hashOf } from '../../../platform/crypto/hash-of.ts'
import { endGrant, findClient, isUnregistered, type GrantOwner } from '../oauth.queries.ts'

/* Storage of the authorization server in PostgreSQL (decision 0005).
 * - A token request is one transaction: codes and refresh tokens are consumed and replaced together or not at all, and *   nothing is returned before it is durable.
 * - Inside it the grant's row is locked before any of the grant's tokens is read. That is the only lock order, so there
 *   is no deadlock; of simultaneous requests with one code or one refresh token at most one succeeds; and no token
 *   survives a revocation that meets a refresh in flight.
 * - Tokens are stored as SHA-256, so a copy of the table contains no usable token.
 * - The clock of the database counts: ages and remaining lifetimes are computed there and passed to the library relative to the *   clock of this process, so that a process with a wrong clock decides like the others.
 */

/** Storage for the authorization server. */
export interface OAuthStore {
  /** The library's adapter for a kind of artifact. */
  adapter(kind: string): Adapter
  /**
   * Runs `work` in one transaction, which all reads and writes of the library join. `ended` collects the grants that
   * the library ends in it.
   */
  transaction<T>(work: (tx: Sql, ended: readonly GrantOwner[]) => Promise<T>): Promise<T>
}

export function createStore(sql: Sql, options: { refresh_grace_seconds: number }): OAuthStore {
  const running = new AsyncLocalStorage<Running>()
  const here: Here = {
    query: (statement) => running.getStore()?.query(statement) ?? statement(sql),
    running: () => running.getStore(),
  }
  return {
    adapter(kind) {
      if (kind === 'Client') return clients(here)
      if (kind === 'Grant') return grants(here)
      if (kind === 'Session') return nowhere
      return artifacts(here, kind, kind === 'RefreshToken' ? options.refresh_grace_seconds : 0)
    },
    transaction: (work) =>
      sql.begin((tx) => {
        const here: Running = { query: inTurns(tx), ended: [] }
        return running.run(here, () => work(tx, here.ended))
      }),
  }
}

type Query = <T>(statement: (sql: Sql) => Promise<T>) => Promise<T>

interface Running {
  query: Query
  ended: GrantOwner[]
}

/** Runs statements in the current transaction, or else on the pool. */
interface Here {
  query: Query
  running: () => Running | undefined
}

/** Serializes statements, because the library calls adapters concurrently. */
function inTurns(tx: Sql): Query {
  let last: Promise<unknown> = Promise.resolve()
  return (statement) => {
    const next = last.then(() => statement(tx))
    last = next.catch(() => undefined)
    return next
  }
}

interface ArtifactRow {
  payload: AdapterPayload
  grant_id: string | null
  /** Age and remaining lifetime in seconds, by the database's clock. */
  age: number
  remaining: number
  spent: boolean
}

/**
 * Kinds that are used once. Used ones are kept until they expire, so that they are distinguished from unknown ones.
 */
const spendable = new Set(['AuthorizationCode', 'RefreshToken', 'DeviceCode'])
const underGrant = new Set(['AuthorizationCode', 'RefreshToken', 'AccessToken', 'DeviceCode'])

/**
 * Adapter for codes, tokens and authorizations. For `grace_seconds` a used refresh token still counts as unused, for
 * clients that lose a response (decision D80).
 */
function artifacts({ query, running }: Here, kind: string, grace_seconds: number): Adapter {
  return {
    ...unsupported,
    async upsert(id, { jti: _jti, iat: _iat, exp: _exp, grantId, ...payload }, expires_in) {
      await query(
        (sql) => sql`
        insert into oauth_artifact (kind, id, grant_id, payload, expires_at)
        values (${kind}, ${hashOf(id)}, ${grantId ?? null}, ${jsonb(payload)}, now() + make_interval(secs => ${expires_in ?? 0}))
        on conflict (kind, id) do update set payload = excluded.payload, expires_at = excluded.expires_at`,
      )
    },
    async find(id) {
      const hash = hashOf(id)
      // Whether it is used is not derived from now(), the start of this transaction, because the transaction that
      // used it may // have started later and committed first.
      if (underGrant.has(kind) && running()) {
        await query(
          (sql) => sql`
          select 1 from oauth_grant
          where id = (select grant_id from oauth_artifact where kind = ${kind} and id = ${hash}) for update`,
        )
      }
      const [row] = await query(
        (sql) => sql<ArtifactRow>`
        select payload, grant_id,
          floor(extract(epoch from now() - created_at))::int as age,
          ceil(extract(epoch from expires_at - now()))::int as remaining,
          consumed_at is not null
            and (${grace_seconds}::int = 0 or consumed_at < clock_timestamp() - make_interval(secs => ${grace_seconds})) as spent
        from oauth_artifact
        where kind = ${kind} and id = ${hash} and (expires_at > now() or ${spendable.has(kind)})`,
      )
      if (!row) return undefined
      return {
        ...row.payload,
        jti: id,
        ...(row.grant_id === null ? {} : { grantId: row.grant_id }),
        ...lifeOf(row),
        ...(row.spent ? { consumed: true } : {}),
      }
    },
    async consume(id) {
      // Under the lock of the grant no other request can use it, except within the grace time, when the first use
      // counts.
      await query(
        (sql) => sql`
        update oauth_artifact set consumed_at = coalesce(consumed_at, now()) where kind = ${kind} and id = ${hashOf(id)}`,
      )
    },
    async destroy(id) {
      await query((sql) => sql`delete from oauth_artifact where kind = ${kind} and id = ${hashOf(id)}`)
    },
    async revokeByGrantId(grant_id) {
      await query((sql) => sql`delete from oauth_artifact where kind = ${kind} and grant_id = ${grant_id}`)
    },
  }
}

/**
 * Adapter for grants, which are created by a consent. A grant does not exist for the library if its user was disabled
 * or has left the organization.
 */
function grants({ query, running }: Here): Adapter {
  return {
    ...unsupported,
    async find(id) {
      const [row] = await query(
        (sql) => sql<{ user_id: string; client_id: string; scopes: string[]; resource: string | null; age: number }>`
        select g.user_id, g.client_id, g.scopes, g.resource, floor(extract(epoch from now() - g.created_at))::int as age
        from oauth_grant g
        join member m on m.org_id = g.org_id and m.user_id = g.user_id
        join app_user u on u.id = g.user_id and u.disabled_at is null
        where g.id = ${id} and g.expires_at > now()`,
      )
      if (!row) return undefined
      return {
        jti: id,
        accountId: row.user_id,
        clientId: row.client_id,
        openid: { scope: row.scopes.join(' ') },
        ...(row.resource !== null && { resources: { [row.resource]: row.scopes.join(' ') } }),
        ...lifeOf({ age: row.age, remaining: lifetimes.grant - row.age }),
      }
    },
    async destroy(id) {
      const ended = await query((sql) => endGrant(sql, id))
      if (ended) running()?.ended.push(ended)
    },
  }
}

function clients({ query }: Here): Adapter {
  return {
    ...unsupported,
    async find(client_id) {
      const client = await query((sql) => findClient(sql, client_id))
      if (!client) return undefined
      return {
        client_id,
        client_name: client.name,
        redirect_uris: client.redirect_uris,
        scope: client.scopes.join(' '),
        // The device flow is only for native apps.
        grant_types: [
          'authorization_code',
          'refresh_token',
          ...(client.native && !isUnregistered(client) ? [deviceGrant] : []),
        ],
        response_types: ['code'],
        application_type: client.native ? 'native' : 'web',
        ...(client.secret_hash === null
          ? { token_endpoint_auth_method: 'none' }
          : { token_endpoint_auth_method: 'client_secret_post', client_secret: client.secret_hash }),
      }
    },
  }
}

/** The grant type of devices (RFC 8628 §3.4). */
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** Creation and expiry times by the clock of this process, in seconds. */
function lifeOf({ age, remaining }: { age: number; remaining: number }): { iat: number; exp: number } {
  const now = Math.floor(Date.now() / 1000)
  return { iat: now - age, exp: now + remaining }
}

const refuse = async (): Promise<never> => {
  throw new Error('the authorization server called an unsupported operation of its store')
}

/** Operations that the enabled flows never use. */
const unsupported: Adapter = {
  upsert: refuse,
  find: refuse,
  findByUid: refuse,
  findByUserCode: refuse,
  consume: refuse,
  destroy: refuse,
  revokeByGrantId: refuse,
}

/**
 * Adapter for the library's sessions, which are not stored: only the service's cookie decides who is signed in
 * (decision O2).
 */
const nowhere: Adapter = {
  upsert: async () => undefined,
  find: async () => undefined,
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: async () => undefined,
  destroy: async () => undefined,
  revokeByGrantId: async () => undefined,
}
