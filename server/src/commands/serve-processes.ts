import cluster, { type Worker } from 'node:cluster'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { Config } from '../config/config.ts'
import type { CommandContext } from './command.ts'
import type { Role } from '../roles.ts'
import { makeLog } from '../platform/log.ts'
import { root } from '../platform/root.ts'
import { hasReusePort, requireFreePort } from '../http/connection/listen.ts'
import type { Service } from '../service.ts'
import { type Foundation, layFoundation, shareFoundation } from './foundation.ts'
import { Interrupted, isInterrupted } from './interrupted.ts'
import { restartWait } from './restart-wait.ts'
import { listenError, runService, showGenerated, stopTimeout_ms } from './run-service.ts'

/** A process that exceeds the time for its stop is killed after this additional time. */
const kill_ms = 2000

/** Messages of a process to its supervisor: it is running, and it is ready. */
type FromPart = { kind: 'hello' } | ({ kind: 'ready' } & Ready)
type ToPart = { kind: 'begin'; index: number; port: number } | { kind: 'stop' }

/** What the supervisor shows to the operator. */
type Ready = Pick<Service, 'url' | 'port' | 'console_url' | 'role' | 'metrics_url' | 'first_owner'> & {
  credentials_file: string | undefined
}

/**
 * Runs the given number of service processes (parts) behind one port until `signal` aborts. The supervisor serves no
 * requests: it owns the embedded database and restarts parts that end. Every part listens, so a connection belongs to one
 * part and ends with it (decision 0038). The first part starts alone, because it migrates and makes the first owner. If a
 * part fails at its first start, all are stopped.
 */
export async function supervise({
  config,
  role,
  processes,
  signal,
  print,
}: Serving & { processes: number }): Promise<number> {
  const log = makeLog(config.log_level, config.secrets)
  for (const warning of config.warnings) log.warn(warning)
  let foundation: Foundation | undefined
  let first: Ready | undefined
  const parts = Array.from({ length: processes }, (_, index) => new Part(index, log, config))
  // On systems without SO_REUSEPORT the parts share one socket, and each accepts connections from it.
  cluster.schedulingPolicy = cluster.SCHED_NONE
  cluster.setupPrimary({
    exec: join(root, 'cadre.mjs'),
    args: ['serve', '--role', role],
  })
  try {
    await requireFreePort(config).catch((error: unknown) => {
      throw listenError(error, config)
    })
    foundation = await layFoundation(config, { log, signal, processes })
    // The others need its migrations, and an error of the port is reported only once.
    first = await parts[0]!.start(signal)
    // If the system chose the port, all parts use the same.
    const { port } = first
    for (const part of parts) part.port = port
    await Promise.all(parts.slice(1).map((part) => part.start(signal)))
    const { welcome } = await import('../welcome.ts')
    print(welcome(first, first.credentials_file, Math.round(performance.now()), processes))
    for (const part of parts) part.keep()
    if (!signal.aborted) await once(signal, 'abort')
    print('Stopping.')
  } catch (error) {
    if (first?.first_owner) await showGenerated(first.first_owner, first.credentials_file, print)
    if (error instanceof PartFailed) return 1
    if (!isInterrupted(error)) throw error
  } finally {
    await Promise.all(parts.map((part) => part.stop()))
    await foundation?.close()
  }
  return 0
}

/** A part ended before it was ready; it has printed the reason. */
class PartFailed extends Error {}

/** One place of the supervisor, with its current process. */
class Part {
  /** The port that all parts share; 0 until the system has chosen one. */
  port: number
  readonly #index: number
  readonly #log: Logger
  readonly #stop_ms: number
  readonly #stopping = new AbortController()
  #worker: Worker | undefined
  #ready_at = Infinity
  /** The delay of the last restart; undefined before the first one. */
  #waited_ms: number | undefined

  constructor(index: number, log: Logger, { drain_seconds, port }: Config) {
    this.port = port
    this.#index = index
    this.#log = log
    this.#stop_ms = stopTimeout_ms + drain_seconds * 1000 + kill_ms
  }

  /** Starts the process and resolves once it is ready. Throws `PartFailed` if it ends first, or `Interrupted`. */
  async start(signal: AbortSignal): Promise<Ready> {
    const worker = (this.#worker = cluster.fork())
    this.#ready_at = Infinity
    const ready = Promise.withResolvers<Ready>()
    worker.on('message', (message: FromPart) => {
      if (message.kind === 'hello') worker.send({ kind: 'begin', index: this.#index, port: this.port } satisfies ToPart)
      else if (message.kind === 'ready') ready.resolve(message)
    })
    // A message to an ended process is lost without harm: `exit` follows.
    worker.on('error', (error) => this.#log.debug({ err: error }, 'could not send a message to a process'))
    worker.once('exit', () => ready.reject(new PartFailed()))
    const onAbort = (): void => ready.reject(new Interrupted())
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    const said = await ready.promise.finally(() => signal.removeEventListener('abort', onAbort))
    this.#ready_at = performance.now()
    this.#log.info({ pid: worker.process.pid }, 'a process of the service is ready')
    return said
  }

  /** Restarts the process whenever it ends, until `stop`. */
  keep(): void {
    const worker = this.#worker
    if (!worker) return
    const ended = (): void => void this.#again(worker)
    if (worker.isDead()) ended()
    else worker.once('exit', ended)
  }

  /** Stops the process and its restarts: gracefully first, then by force. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    const worker = this.#worker
    if (!worker || worker.isDead()) return
    const exited = once(worker, 'exit')
    if (worker.isConnected()) worker.send({ kind: 'stop' } satisfies ToPart)
    const kill = setTimeout(() => worker.process.kill('SIGKILL'), this.#stop_ms)
    await exited
    clearTimeout(kill)
  }

  async #again(ended: Worker): Promise<void> {
    const { signal } = this.#stopping
    if (signal.aborted) return
    const ready_ms = Math.max(0, performance.now() - this.#ready_at)
    const again_ms = restartWait(this.#waited_ms, this.#ready_at === Infinity ? undefined : ready_ms)
    this.#waited_ms = again_ms
    const { exitCode, signalCode, pid } = ended.process
    this.#log.error(
      { pid, exit_code: exitCode, signal: signalCode, again_ms },
      'a process of the service ended; restarting it',
    )
    await delay(again_ms, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    const starting = this.start(signal)
    this.keep()
    // `keep` handles the end of the new process.
    await starting.catch(() => {})
  }
}

/** Runs one process of a supervised service, until the supervisor stops it. */
export async function runPart({ config, role, signal, print }: Serving): Promise<number> {
  const log = makeLog(config.log_level, config.secrets)
  const ordered = new AbortController()
  const begin = Promise.withResolvers<{ index: number; port: number }>()
  const say = (message: FromPart): void => void process.send?.(message)
  process.on('message', (message: ToPart) => {
    if (message.kind === 'begin') begin.resolve(message)
    else ordered.abort(new Interrupted())
  })
  const stop = AbortSignal.any([signal, ordered.signal])
  stop.addEventListener('abort', () => begin.reject(stop.reason), { once: true })
  say({ kind: 'hello' })
  const place = await begin.promise.catch(() => undefined)
  if (place === undefined) return 0
  const { index, port } = place
  return runService({
    config: { ...config, port, metrics_port: metricsPort(config, index) },
    shares_port: hasReusePort,
    role,
    log,
    signal: stop,
    foundation: shareFoundation(config),
    print,
    onReady: ({ url, port, console_url, role, metrics_url, first_owner }, credentials_file) =>
      say({ kind: 'ready', url, port, console_url, role, metrics_url, first_owner, credentials_file }),
  })
}

/** The metrics port of a part: the configured one plus its index. */
function metricsPort({ metrics_port }: Config, index: number): Config['metrics_port'] {
  return typeof metrics_port === 'number' && metrics_port > 0 ? metrics_port + index : metrics_port
}

/** Arguments of a service process. */
export interface Serving extends Pick<CommandContext, 'signal' | 'print'> {
  config: Config
  role: Role
}
