import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino, type Logger } from 'pino'
import { readConfig, type Environment } from '../src/config/config.ts'
import { openQueue } from '../src/engine/queue/queue.ts'
import type { FirstOwner } from '../src/first-start.ts'
import { migrate } from '../src/platform/postgres/migrate.ts'
import { openDatabase, sqlState, type Sql } from '../src/platform/postgres/database.ts'
import type { Service } from '../src/service.ts'
import { testServer } from './postgres.ts'

/** A service for one test file, on a new database. */
export interface TestService {
  url: string
  service: Service
  sql: Sql
  /** The first owner: `api_key` has every scope. */
  owner: FirstOwner
  /** Sends a request and reads its JSON; see `send`. */
  send: Send
  stop(): Promise<void>
}

/** A response whose body was read: JSON where it is any, text otherwise. */
export interface Reply {
  status: number
  headers: Headers
  body: any
}

export interface SendOptions {
  /** An API key; the owner's where nothing is said. */
  key?: string | null
  token?: string
  cookie?: string
  headers?: Record<string, string>
  /** Sent as JSON; text is sent as it is. */
  body?: unknown
}

export type Send = (method: string, path: string, options?: SendOptions) => Promise<Reply>

/**
 * Makes a database from the migrated template. It is dropped by `drop`, or with the server when the run ends.
 */
export async function makeTestDatabase(): Promise<{ connection: pg.ClientConfig; drop(): Promise<void> }> {
  const server = await testServer()
  const name = `test_${randomBytes(8).toString('hex')}`
  await onServer(server.connection, async (admin) => {
    await makeTemplate(admin, server.connection)
    await admin.query(`create database ${name} template cadre_template strategy file_copy`)
  })
  return {
    connection: { ...server.connection, database: name },
    async drop() {
      // A process of PostgreSQL's own may be in it, which we may not end: then it goes with the server.
      await onServer(server.connection, (admin) => admin.query(`drop database if exists ${name} with (force)`)).catch(
        () => {},
      )
      await server.release()
    },
  }
}

/** Starts a service for tests: builtin models, any free port, limits scaled so far that only tests of limits meet them. */
export async function startTestService(env: Environment = {}, options: StartOptions = {}): Promise<TestService> {
  const database = await makeTestDatabase()
  const service = await startOn(database.connection, env, options)
  const owner = service.first_owner
  if (!owner) throw new Error('a new database gets its first owner')
  return {
    url: service.url,
    service,
    sql: service.context.sql,
    owner,
    send: sender(service.url, owner.api_key),
    async stop() {
      await service.stop()
      await database.drop()
    },
  }
}

/** Where a service listens, regardless of its public URL: for tests that set one. */
export function localUrl({ service }: TestService): string {
  const address = service.app.server.address()
  if (typeof address !== 'object' || address === null) throw new Error('a service listens on a port')
  return `http://127.0.0.1:${address.port}`
}

/** Starts another service on the database of a test's, as a second process would be; stop it before the first. */
export function startAnother(
  { service }: TestService,
  env: Environment = {},
  options: StartOptions = {},
): Promise<Service> {
  return startOn(service.context.database.settings, env, options)
}

/** How a service of a test differs from one of users, other than by settings. */
export interface StartOptions {
  /**
   * How many times as long as usual its database may take: more than usual, because the machine of a test may stand still
   * for seconds. A test of what happens after those bounds says 1.
   */
  timeoutMultiplier?: number
  /** Where it logs; nowhere where nothing is said. */
  log?: Logger
}

/** Starts a service on a database, with the secret key of all tests unless another one is said. */
export async function startOn(
  connection: pg.ClientConfig,
  env: Environment = {},
  { timeoutMultiplier = 5, log }: StartOptions = {},
): Promise<Service> {
  // Loading the service takes a second of a processor, which tests of other processes need not spend.
  const { startService } = await import('../src/service.ts')
  const config = readConfig({
    PORT: '0',
    CADRE_RATE_LIMITS_SCALE: '10000',
    CADRE_LOG_LEVEL: 'silent',
    CADRE_METRICS_PORT: 'off',
    // Never made: it tells two services on one database apart.
    CADRE_DATA_DIR: join(tmpdir(), `cadre-none-${randomBytes(8).toString('hex')}`),
    CADRE_ADMIN_EMAIL: 'owner@example.com',
    CADRE_ADMIN_PASSWORD: 'correct horse battery staple',
    CADRE_OAUTH_REDIRECT_URI: 'https://client.example/cb',
    ...env,
  })
  const secret_key = config.secret_key ?? 'a secret key for tests, 32 characters'
  return startService({
    config,
    secret_key,
    connection,
    log: log ?? pino({ level: config.log_level }),
    timeoutMultiplier,
  })
}

/** Sends requests to a service; without another credential with `api_key`. */
export function sender(url: string, api_key: string): Send {
  return async (method, path, options = {}) => {
    const { key = api_key, token, cookie, body } = options
    const headers = new Headers(options.headers)
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    else if (cookie !== undefined) headers.set('cookie', cookie)
    else if (key !== null) headers.set('x-api-key', key)
    if (body !== undefined && !headers.has('content-type')) headers.set('content-type', 'application/json')
    const response = await fetch(new URL(path, url), {
      method,
      headers,
      redirect: 'manual',
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = isEndless(path, response) ? await firstPart(response) : await response.text()
    const json = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
    return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text }
  }
}

/** Whether a response is the stream of a project, which does not end. */
function isEndless(path: string, { headers, body }: Response): boolean {
  return (
    body !== null &&
    /\/projects\/[^/]+\/events\/stream/.test(path) &&
    headers.get('content-type')?.startsWith('text/event-stream') === true
  )
}

/** What comes first of a stream; the rest is left. */
async function firstPart(response: Response): Promise<string> {
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  await reader.cancel()
  return new TextDecoder().decode(value)
}

/** Resolves with what `look` finds once it finds something; fails after `timeout_ms`. For what only shows by looking. */
export async function eventually<T>(
  look: () => Promise<T | undefined | false | null>,
  timeout_ms = 60_000,
): Promise<T> {
  const start_ms = Date.now()
  for (;;) {
    const found = await look()
    if (found) return found
    const waited_ms = Date.now() - start_ms
    if (waited_ms > timeout_ms) throw new Error('it did not come true in time')
    // What takes long is looked at less often: each look costs a statement.
    await new Promise((resolve) => setTimeout(resolve, Math.min(Math.max(waited_ms / 8, 10), 250)))
  }
}

async function onServer<T>(connection: pg.ClientConfig, work: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ ...connection, database: 'postgres' })
  await admin.connect()
  try {
    return await work(admin)
  } finally {
    await admin.end()
  }
}

/** The template is created once a server, by the first caller; the others wait for the lock. */
async function makeTemplate(admin: pg.Client, connection: pg.ClientConfig): Promise<void> {
  await admin.query(`select pg_advisory_lock(hashtext('cadre template'))`)
  try {
    const { rowCount } = await admin.query(
      `select 1 from pg_database where datname = 'cadre_template' and datistemplate`,
    )
    if (rowCount) return
    await admin.query('drop database if exists cadre_template')
    await admin.query('create database cadre_template')
    const template = openDatabase({ connection: { ...connection, database: 'cadre_template' }, connectionsMax: 1 })
    await migrate(template.sql)
    // The queue's own schema takes a second of a processor, which each service would spend again.
    const queue = openQueue({ database: template, log: pino({ level: 'silent' }), supervise: false })
    await queue.ready
    await queue.close()
    await template.close()
    await admin.query('alter database cadre_template is_template true')
  } finally {
    await admin.query(`select pg_advisory_unlock(hashtext('cadre template'))`)
  }
}

/**
 * Runs statements that lock whole tables, and repeats them after a deadlock: the service's own work goes on meanwhile,
 * and PostgreSQL ends one of two transactions that wait for each other.
 */
export async function scriptUntilFree(sql: Sql, text: string): Promise<void> {
  for (;;) {
    try {
      return await sql.script(text)
    } catch (error) {
      if (sqlState(error) !== '40P01') throw error
    }
  }
}
