import { execFile } from 'node:child_process'
import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { accessSettings } from './access-rules.ts'
import { launchAs } from './account.ts'
import { type Cluster, lastError, port, socketName, spawnError, spawnLaunch } from './cluster.ts'

/** Parameters of the server by name, as in `postgresql.conf`. */
export type ServerSettings = Readonly<Record<string, string>>

/** A server that runs; not necessarily accepting connections yet. */
export interface Postmaster {
  pid: number
  /** It was running already: an earlier process of the service was killed and left it. */
  isAdopted: boolean
  /** Resolves once it is gone, with how it ended. */
  exited: Promise<string>
  /** What it complained of since it was started. */
  lastLogError(): Promise<string | undefined>
}

const logMax_bytes = 10 * 1024 * 1024
const adoptedPoll_ms = 200
/** How long a server that is to be replaced, or is shutting down, may take before it is killed. */
const leavingTimeout_ms = 30_000

/**
 * Starts the server of a cluster, or adopts the running one. One that runs with other settings, or is shutting down, is
 * waited for and replaced. The caller holds the data folder's lock, so no other process does this.
 */
export async function launchPostmaster(
  cluster: Cluster,
  settings: ServerSettings,
  onLaunch: (postmaster: Postmaster) => void,
): Promise<Postmaster> {
  const args = [
    '-D',
    cluster.dir,
    ...Object.entries(serverSettings(cluster, settings)).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ]
  const running = await findRunning(cluster)
  if (running === undefined) await forgetPredecessor(cluster)
  else if (running.isStaying && (await wasStartedWith(cluster, args))) return adopt(cluster, running.pid)
  else await stopPostmaster(adopt(cluster, running.pid), leavingTimeout_ms)
  return spawnPostmaster(cluster, args, onLaunch)
}

/**
 * Stops a server in order: open transactions are rolled back and everything is written. Where that takes longer than
 * `timeout_ms` it is ended at once, which costs nothing but a recovery at the next start.
 */
export async function stopPostmaster(postmaster: Postmaster, timeout_ms: number): Promise<void> {
  if (await endsWithin(postmaster.exited, 0)) return
  for (const [signal, patience_ms] of [
    ['SIGINT', timeout_ms],
    ['SIGQUIT', 3000],
    ['SIGKILL', 3000],
  ] as const) {
    sendSignal(postmaster.pid, signal)
    if (await endsWithin(postmaster.exited, patience_ms)) return
  }
}

/** What is asked of the server on its command line, which nothing in the data folder can override. */
function serverSettings({ dir, socket_dir }: Cluster, settings: ServerSettings): ServerSettings {
  return {
    listen_addresses: '',
    port: String(port),
    unix_socket_directories: `"${socket_dir.replaceAll('"', '""')}"`,
    unix_socket_permissions: '0700',
    ...accessSettings(dir),
    max_connections: '100',
    shared_buffers: '128MB',
    fsync: 'on',
    full_page_writes: 'on',
    synchronous_commit: 'on',
    // After a crash of one of its processes the whole server is stopped and restarted. The recovery of PostgreSQL 18
    // refuses connections forever where the recovering process dies too, as it does while the disk fails or is full.
    restart_after_crash: 'off',
    // Errors of statements go to their clients; in a file they would only put users' data at an unexpected place.
    log_min_messages: 'log',
    log_checkpoints: 'off',
    ...settings,
  }
}

async function spawnPostmaster(
  cluster: Cluster,
  args: string[],
  onLaunch: (postmaster: Postmaster) => void,
): Promise<Postmaster> {
  const { binaries, dir, log_file } = cluster
  const launch = await launchAs(cluster.account, binaries.postgres, args, [
    binaries.postgres,
    join(dir, 'PG_VERSION'),
    cluster.socket_dir,
  ])
  // A file, not a pipe: the server may outlive this process, and goes on being able to write.
  const log = await openLog(log_file)
  const { size: logStart } = await log.stat()
  const child = spawnLaunch(launch, cluster, ['ignore', log.fd, log.fd])
  let fault: string | undefined
  const exited = new Promise<string>((resolve) => {
    child.on('error', (error) => resolve((fault = spawnError(error, launch))))
    child.on('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`))
  })
  child.unref()
  const lastLogError = async (): Promise<string | undefined> =>
    fault ?? lastError((await readFile(log_file)).subarray(logStart).toString())
  // Without a pid there was nothing to spawn, and `exited` says why.
  const postmaster = { pid: child.pid ?? 0, isAdopted: false, exited, lastLogError }
  // Called before any waiting: a process that ends meanwhile must know which server to stop.
  onLaunch(postmaster)
  await log.close()
  return postmaster
}

async function openLog(file: string): ReturnType<typeof open> {
  const { size } = await stat(file).catch(() => ({ size: 0 }))
  if (size > logMax_bytes) await rename(file, `${file}.1`)
  return open(file, 'a', 0o600)
}

function adopt({ dir }: Cluster, pid: number): Postmaster {
  const watch = async (): Promise<string> => {
    while (await isPostmaster(pid, dir)) await sleep(adoptedPoll_ms, undefined, { ref: false })
    return 'a cause unknown, for it was adopted'
  }
  return { pid, isAdopted: true, exited: watch(), lastLogError: async () => undefined }
}

/** The server that `postmaster.pid` names, if it lives. */
async function findRunning(cluster: Cluster): Promise<{ pid: number; isStaying: boolean } | undefined> {
  const { pid, status } = await readPidFile(cluster)
  if (!(pid > 0) || !(await isPostmaster(pid, cluster.dir))) return undefined
  return { pid, isStaying: status !== 'stopping' }
}

/** Whether the server with this process id says that it accepts connections. */
export async function isAccepting(cluster: Cluster, pid: number): Promise<boolean> {
  const written = await readPidFile(cluster)
  return written.pid === pid && written.status === 'ready'
}

/**
 * The socket folder of a server that runs on the cluster in `dir` and accepts connections, regardless of who started
 * it.
 */
export async function findSocketFolder(dir: string): Promise<string | undefined> {
  const { pid, socket_dir, status } = await readPidFile({ dir })
  return status === 'ready' && pid > 0 && (await isPostmaster(pid, dir)) ? socket_dir : undefined
}

interface PidFile {
  pid: number
  socket_dir: string | undefined
  status: string | undefined
}

/** `postmaster.pid`: the first line names the process, the fifth its socket's folder, the eighth what it is doing. */
async function readPidFile({ dir }: Pick<Cluster, 'dir'>): Promise<PidFile> {
  const lines = (await readFile(join(dir, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  return { pid: Number(lines[0]), socket_dir: lines[4]?.trim(), status: lines[7]?.trim() }
}

/** Whether the process is a server on this cluster, and not another that got its number. False for a zombie. */
async function isPostmaster(pid: number, dir: string): Promise<boolean> {
  if (process.platform === 'linux') {
    const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    return command.includes(`\0-D\0${dir}\0`)
  }
  const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).catch(() => ({
    stdout: '',
  }))
  return stdout.includes(` -D ${dir} `)
}

async function wasStartedWith({ dir }: Cluster, args: string[]): Promise<boolean> {
  const text = await readFile(join(dir, 'postmaster.opts'), 'utf8').catch(() => '')
  return text.trimEnd().endsWith(` ${args.map((arg) => `"${arg}"`).join(' ')}`)
}

/**
 * After a crash the files of the former server name its process, and PostgreSQL would refuse to start if another
 * process got that number, which after a reboot is likely. `postmaster.pid` is not removed: it also tells the new server
 * where to look for processes that still use the old one's memory. It is made to name us, the parent, whom PostgreSQL
 * knows to be no server.
 */
async function forgetPredecessor({ dir, socket_dir }: Cluster): Promise<void> {
  await rm(join(socket_dir, `${socketName}.lock`), { force: true })
  const file = join(dir, 'postmaster.pid')
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text !== '') await writeFile(file, text.replace(/^.*/, String(process.pid)))
}

/** Sends a signal, and takes no notice of a process that is gone. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    if (pid > 0) process.kill(pid, signal)
  } catch {
    // It is gone, which is what was wanted.
  }
}

async function endsWithin(exited: Promise<unknown>, timeout_ms: number): Promise<boolean> {
  const timer = new AbortController()
  const timeout = sleep(timeout_ms, false, { signal: timer.signal }).catch(() => false)
  const ended = await Promise.race([exited.then(() => true), timeout])
  timer.abort()
  return ended
}
