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

/** A running server, which may not accept connections yet. */
export interface Postmaster {
  pid: number
  /** The server was left running by a killed process of the service. */
  isAdopted: boolean
  /** Resolves once it has exited, with how it ended. */
  exited: Promise<string>
  /** The last error in its log since it was started. */
  lastLogError(): Promise<string | undefined>
}

const logMax_bytes = 10 * 1024 * 1024
const adoptedPoll_ms = 200
/** How long a server that is replaced or shutting down may take before it is stopped by force. */
const leavingTimeout_ms = 30_000

/**
 * Starts the server of a cluster, or adopts the running one. A server that has other settings or is shutting down is
 * stopped and replaced. The caller holds the data folder's lock, so no other process does this.
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
 * Stops a server with a fast shutdown: open transactions are rolled back and everything is written. After `timeout_ms` it
 * is stopped immediately, so the next start begins with a recovery.
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

/** Settings for the server's command line, which no file in the data folder overrides. */
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
    // After a crash of a backend the server exits, and the service restarts it: if the recovering process of PostgreSQL 18
    // also dies, as it does while the disk fails or is full, the server would refuse connections forever.
    restart_after_crash: 'off',
    // Errors of statements go to their clients; in the log they would store users' data where none is expected.
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
  // A file, not a pipe: the server may outlive this process, and must still be able to write.
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
  // Without a pid the program could not be spawned, and `exited` has the reason.
  const postmaster = { pid: child.pid ?? 0, isAdopted: false, exited, lastLogError }
  // Called before the next await: a process that exits meanwhile must know which server to stop.
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
    return 'unknown exit status of an adopted process'
  }
  return { pid, isAdopted: true, exited: watch(), lastLogError: async () => undefined }
}

/** The server that `postmaster.pid` names, if it runs. */
async function findRunning(cluster: Cluster): Promise<{ pid: number; isStaying: boolean } | undefined> {
  const { pid, status } = await readPidFile(cluster)
  if (!(pid > 0) || !(await isPostmaster(pid, cluster.dir))) return undefined
  return { pid, isStaying: status !== 'stopping' }
}

/** Whether `postmaster.pid` says that the server with this process id accepts connections. */
export async function isAccepting(cluster: Cluster, pid: number): Promise<boolean> {
  const written = await readPidFile(cluster)
  return written.pid === pid && written.status === 'ready'
}

/**
 * The socket folder of a server that runs on the cluster in `dir` and accepts connections, whichever process started it.
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

/** Reads `postmaster.pid`: the first line is the process id, the fifth the socket's folder, the eighth the status. */
async function readPidFile({ dir }: Pick<Cluster, 'dir'>): Promise<PidFile> {
  const lines = (await readFile(join(dir, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n')
  return { pid: Number(lines[0]), socket_dir: lines[4]?.trim(), status: lines[7]?.trim() }
}

/** Whether the process is a server of this cluster, and not another with a reused process id. False for a zombie. */
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
 * After a crash the files of the former server have its process id. PostgreSQL would refuse to start if another process
 * has that id now, which is likely after a reboot. `postmaster.pid` is not removed, because it also tells the new server
 * where to look for processes that still use the old shared memory. It gets the id of this process instead, the parent,
 * which PostgreSQL does not take for a server.
 */
async function forgetPredecessor({ dir, socket_dir }: Cluster): Promise<void> {
  await rm(join(socket_dir, `${socketName}.lock`), { force: true })
  const file = join(dir, 'postmaster.pid')
  const text = await readFile(file, 'utf8').catch(() => '')
  if (text !== '') await writeFile(file, text.replace(/^.*/, String(process.pid)))
}

/** Sends a signal; ignores a process that does not exist. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    if (pid > 0) process.kill(pid, signal)
  } catch {
    // The process has already exited.
  }
}

async function endsWithin(exited: Promise<unknown>, timeout_ms: number): Promise<boolean> {
  const timer = new AbortController()
  const timeout = sleep(timeout_ms, false, { signal: timer.signal }).catch(() => false)
  const ended = await Promise.race([exited.then(() => true), timeout])
  timer.abort()
  return ended
}
