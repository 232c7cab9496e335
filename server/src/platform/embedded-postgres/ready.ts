import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, port } from './cluster.ts'
import { EmbeddedPostgresError, remedy } from './error.ts'
import { isAccepting, type Postmaster } from './postmaster.ts'

/** The part of a logger that is used. */
export interface StartLog {
  info(details: object, message: string): void
}

/** The server ended before it accepted a connection. */
export class Ended extends Error {
  /** Whether shared memory or a file of the former server is still in use. */
  get isInTheWay(): boolean {
    return /is still in use|already exists/.test(this.message)
  }

  explained(): EmbeddedPostgresError {
    return new EmbeddedPostgresError(`PostgreSQL did not start: ${this.message}. ${this.#advice()}${remedy}`)
  }

  #advice(): string {
    if (/incompatible with server/.test(this.message))
      return 'Run the version of Cadre that made the data folder, back up, and restore with this one into a new folder. '
    return /No space left on device/.test(this.message) ? 'Free space on its disk. ' : ''
  }
}

/** Maximum duration of a recovery after a crash, which usually takes less than a second. */
const recoveryTimeout_ms = 10 * 60_000
/** Maximum time from the end of the recovery to the first connection. */
const connectTimeout_ms = 15_000

/**
 * Resolves once the service's role has connected to its database; makes both if they are missing. Throws `Ended` if the
 * server exits first, and `EmbeddedPostgresError` if it takes too long. It does not stop the server.
 */
export async function waitUntilReady(
  postmaster: Postmaster,
  cluster: Cluster,
  log: StartLog,
  signal: AbortSignal,
): Promise<void> {
  const began_ms = performance.now()
  const ended = postmaster.exited.then((cause) => ({ cause }))
  let acceptingSince_ms: number | undefined
  for (let reports = 0; ;) {
    // Checked before each connection, because refused connections would fill the server's log.
    const failure = (await isAccepting(cluster, postmaster.pid)) ? await tryConnection(cluster) : undefined
    const now_ms = performance.now()
    if (failure !== undefined) {
      if (failure === 'none') return
      acceptingSince_ms ??= now_ms
    }
    const isLate =
      acceptingSince_ms === undefined
        ? now_ms - began_ms > recoveryTimeout_ms
        : now_ms - acceptingSince_ms > connectTimeout_ms
    if (isLate)
      throw new EmbeddedPostgresError(
        `PostgreSQL runs, but does not accept connections: ${failure ?? 'it is still recovering'}. ${remedy}`,
      )
    if (now_ms - began_ms > (reports + 1) * 5000)
      log.info({ waited_s: (reports += 1) * 5 }, 'PostgreSQL is still starting')

    const end = await Promise.race([ended, sleep(now_ms - began_ms < 1000 ? 5 : 100, undefined, { signal })])
    if (end) throw new Ended((await postmaster.lastLogError()) ?? `it ended with ${end.cause}`)
  }
}

/** Connects once. Returns `none`, or the reason why the service's role cannot connect yet. */
async function tryConnection(cluster: Cluster): Promise<string> {
  try {
    await withClient(cluster, 'cadre', 'cadre', async () => {}).catch((error: Error) => {
      if (!isMissing(error)) throw error
      return createDatabase(cluster)
    })
    return 'none'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

/** Whether role or database is missing, as at a first start. */
function isMissing(error: Error): boolean {
  return 'code' in error && (error.code === '28000' || error.code === '3D000')
}

/** Creates the role and its database. The role is no superuser, so SQL cannot read files or run programs. */
async function createDatabase(cluster: Cluster): Promise<void> {
  await withClient(cluster, 'postgres', 'postgres', async (client) => {
    const { rowCount: roles } = await client.query(`select from pg_roles where rolname = 'cadre'`)
    if (!roles) await client.query('create role cadre login createdb')
    const { rowCount: databases } = await client.query(`select from pg_database where datname = 'cadre'`)
    if (!databases) await client.query('create database cadre owner cadre')
  })
}

async function withClient(
  cluster: Cluster,
  user: string,
  database: string,
  work: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const client = new pg.Client({
    host: cluster.socket_dir,
    port,
    user,
    database,
    ssl: false,
    connectionTimeoutMillis: 5000,
  })
  // A connection that dies between two statements emits `error`; the next statement reports it.
  client.on('error', () => {})
  try {
    await client.connect()
    await work(client)
  } finally {
    await client.end().catch(() => {})
  }
}
