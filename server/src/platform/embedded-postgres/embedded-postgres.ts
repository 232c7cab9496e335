import { realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type Cluster, type CopyCluster, port, prepareCluster } from './cluster.ts'
import {
  findSocketFolder,
  launchPostmaster,
  type Postmaster,
  sendSignal,
  type ServerSettings,
  stopPostmaster,
} from './postmaster.ts'
import { Ended, type StartLog, waitUntilReady } from './ready.ts'

/** The embedded PostgreSQL, which is kept running until `stop`. */
export interface EmbeddedPostgres {
  /** For `pg`: over the unix socket, as an ordinary role that owns the database `cadre`. Stays valid after restarts. */
  connection: pg.ClientConfig
  /** The current process of the server, which changes with a restart. */
  readonly pid: number
  /** Stops the server and resolves once it has exited, after at most 16 s. Stop its users first. */
  stop(): Promise<void>
}

export interface EmbeddedPostgresOptions {
  /** The data folder of the service, whose lock the caller holds; the cluster is in `postgres` below it. */
  data_dir: string
  log: EmbeddedPostgresLog
  /** Aborts the start. */
  signal?: AbortSignal
  /** How to copy a cluster at the first start, instead of making it. */
  copy?: CopyCluster | undefined
  /** Override the usual settings, for tests (`fsync: 'off'`). A running server with other settings is restarted. */
  settings?: ServerSettings
}

/** The part of a logger that is used. */
export interface EmbeddedPostgresLog extends StartLog {
  error(details: object, message: string): void
}

const stopTimeout_ms = 10_000
/** A failed restart is retried after 50 ms, doubled up to this. */
const restartPauseMax_ms = 5000
/** After this time a server counts as healthy, and the retries start again without delay. */
const healthyAfter_ms = 60_000
/** How long to retry a start while processes of a killed server still use its shared memory. */
const lingeringTimeout_ms = 20_000

/**
 * Starts PostgreSQL from the installed binaries, creates its cluster and database at the first start, and resolves once it
 * accepts connections. It is restarted whenever it ends. It listens on no network address. A server that a killed service
 * left running is adopted. If this process exits without `stop`, the server gets SIGINT.
 * @throws EmbeddedPostgresError
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const { data_dir, log, settings = {}, signal, copy } = options
  const began_ms = performance.now()
  const cluster = await prepareCluster(data_dir, copy)
  const life = new AbortController()
  let current: Postmaster | undefined
  const launch = (until: AbortSignal): Promise<Postmaster> =>
    launchUntilReady(cluster, settings, log, until, (postmaster) => (current = postmaster))
  const onExit = (): void => void (current && sendSignal(current.pid, 'SIGINT'))
  process.once('exit', onExit)

  const first = await launch(signal ? AbortSignal.any([signal, life.signal]) : life.signal).catch((error: unknown) => {
    process.off('exit', onExit)
    throw error
  })
  log.info(
    { pid: first.pid, is_adopted: first.isAdopted, duration_ms: Math.round(performance.now() - began_ms) },
    'PostgreSQL is ready',
  )
  const supervision = supervise(first, () => launch(life.signal), log, life.signal)
  return {
    connection: connectionTo(cluster.socket_dir),
    get pid() {
      return (current ?? first).pid
    },
    async stop() {
      life.abort()
      process.off('exit', onExit)
      await supervision
      await stopPostmaster(current ?? first, stopTimeout_ms)
    },
  }
}

/**
 * Connection to the server that another process runs in `data_dir`; undefined if none accepts connections. Only the account
 * of the service and root can use it.
 */
export async function findEmbeddedPostgres(data_dir: string): Promise<pg.ClientConfig | undefined> {
  const data = await realpath(data_dir).catch(() => undefined)
  const socket_dir = data && (await findSocketFolder(join(data, 'postgres')))
  return socket_dir ? connectionTo(socket_dir) : undefined
}

/** Whether `data_dir` has the files of an embedded server. */
export async function hasEmbeddedPostgres(data_dir: string): Promise<boolean> {
  return (await stat(join(data_dir, 'postgres', 'PG_VERSION')).catch(() => undefined)) !== undefined
}

function connectionTo(socket_dir: string): pg.ClientConfig {
  return { host: socket_dir, port, user: 'cadre', database: 'cadre', ssl: false }
}

/** Restarts the server whenever it ends, until `signal` aborts. */
async function supervise(
  first: Postmaster,
  launch: () => Promise<Postmaster>,
  log: EmbeddedPostgresLog,
  signal: AbortSignal,
): Promise<void> {
  let pause_ms = 0
  const aborted = new Promise<undefined>((resolve) =>
    signal.addEventListener('abort', () => resolve(undefined), { once: true }),
  )
  for (let server: Postmaster | undefined = first; server;) {
    const readySince_ms = performance.now()
    const cause = await Promise.race([server.exited, aborted])
    if (cause === undefined) return
    const lastLogError = await server.lastLogError().catch(() => undefined)
    log.error({ pid: server.pid, cause, lastLogError }, 'PostgreSQL ended; restarting it')
    if (performance.now() - readySince_ms > healthyAfter_ms) pause_ms = 0
    server = undefined
    while (!server && !signal.aborted) {
      await sleep(pause_ms, undefined, { signal }).catch(() => {})
      pause_ms = Math.min(Math.max(50, pause_ms * 2), restartPauseMax_ms)
      server = await launch().catch((error: unknown) => {
        if (!signal.aborted) log.error({ err: error, next_ms: pause_ms }, 'PostgreSQL could not be restarted; retrying')
        return undefined
      })
    }
    if (server) log.info({ pid: server.pid }, 'PostgreSQL is ready again')
  }
}

/**
 * Launches the server and waits for its first connection; after a failure no server is left running. `onLaunch` gets the
 * server as soon as it is spawned.
 */
async function launchUntilReady(
  cluster: Cluster,
  settings: ServerSettings,
  log: EmbeddedPostgresLog,
  signal: AbortSignal,
  onLaunch: (postmaster: Postmaster) => void,
): Promise<Postmaster> {
  const lingersUntil_ms = performance.now() + lingeringTimeout_ms
  for (;;) {
    signal.throwIfAborted()
    const postmaster = await launchPostmaster(cluster, settings, onLaunch)
    onLaunch(postmaster)
    try {
      await waitUntilReady(postmaster, cluster, log, signal)
      signal.throwIfAborted()
      return postmaster
    } catch (error) {
      await stopPostmaster(postmaster, stopTimeout_ms)
      if (!(error instanceof Ended)) throw error
      // An adopted server may have been shutting down already.
      const mayPass = error.isInTheWay || postmaster.isAdopted
      if (!mayPass || performance.now() > lingersUntil_ms) throw error.explained()
    }
    await sleep(50, undefined, { signal })
  }
}
