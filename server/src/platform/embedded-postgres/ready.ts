import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { type Cluster, port } from './cluster.ts'
import { EmbeddedPostgresError, remedy } from './error.ts'
import { isAccepting, type Postmaster } from './postmaster.ts'

/** What of a logger is used. */
export interface StartLog {
  info(details: object, message: string): void
}

/** The server ended before it accepted a connection. */
export class Ended extends Error {
  /** Something of the former server is still there. */
  get isInTheWay(): boolean {
    return /is still in use|already exists/.test(this.message)
  }

  explained(): EmbeddedPostgresError {
    return new EmbeddedPostgresError(`PostgreSQL did not start: ${this.message}. ${this.#advice()}${remedy}`)
  }

  #advice(): string {
    if (/incompatible with server/.test(this.message))
      return 'Run the version of Cadre that made the data folder, back up, and restore with this one into a new folder. '
    return /No space left on device/.test(this.message) ? 'Make room on its disk. ' : ''
  }
}

/** Longest recovery after a crash. Usually it is well below a second. */
const recoveryTimeout_ms = 10 * 60_000
/** Longest time from there to the first connection. */
const connectTimeout_ms = 15_000

/**
 * Resolves once the service's role has connected to its database, both made if they are missing. Throws `Ended` when
 * the server ends before, `EmbeddedPostgresError` when it takes too long; the server is left as it is.
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
    // Asking by connecting would work too, and fill the server's log with refusals.
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
        `PostgreSQL runs, but does not let us in: ${failure ?? 'it still recovers'}. ${remedy}`,
      )
    if (now_ms - began_ms > (reports + 1) * 5000)
      log.info({ waited_s: (reports += 1) * 5 }, 'PostgreSQL is still starting')

    const end = await Promise.race([ended, sleep(now_ms - began_ms < 1000 ? 5 : 100, undefined, { signal })])
    if (end) throw new Ended((await postmaster.lastLogError()) ?? `it ended with ${end.cause}`)
  }
}

/** `none`, or why the service's role cannot connect yet. */
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

/** Role or database: a first start, or one that ended between `initdb` and here. */
function isMissing(error: Error): boolean {
  return 'code' in error && (error.code === '28000' || error.code === '3D000')
}

/** The role owns its database and is no superuser, so that SQL cannot become files or programs of the machine. */
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
