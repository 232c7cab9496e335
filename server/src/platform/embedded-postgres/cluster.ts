import { type ChildProcess, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from './data-folder.ts'
import { type Account, chooseAccount, type Launch, launchAs } from './account.ts'
import { writeAccessRules } from './access-rules.ts'
import { type Binaries, findBinaries } from './binaries.ts'
import { EmbeddedPostgresError, remedy } from './error.ts'

/** A cluster on disk, for which a server can be started. */
export interface Cluster {
  binaries: Binaries
  account: Account | undefined
  /** PostgreSQL's own data folder. */
  dir: string
  /** Private folder of the unix socket. */
  socket_dir: string
  /** The server's standard output and standard error. */
  log_file: string
}

/**
 * Copies a cluster into an empty folder, for `account`. Resolves with whether the files are already synced to disk. If it
 * rejects, `initdb` makes the cluster.
 */
export type CopyCluster = (folder: string, account: Account | undefined) => Promise<'written' | 'synced'>

/**
 * Options of `initdb`: UTF-8, and PostgreSQL's builtin collation C.UTF-8 (code point order, with upper and lower case beyond
 * ASCII). Connections only by the socket. Checksums are PostgreSQL's default.
 */
export const clusterOptions = [
  ...['--encoding=UTF8', '--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
  ...['--username=postgres', '--auth-local=peer', '--auth-host=reject', '--no-instructions'],
]

/** The longest path of a unix socket, in bytes: 107 on Linux, 103 on macOS. */
const socketPathMax_bytes = 103
/** Only part of the socket's name; the server listens on no network port. */
export const port = 5432
export const socketName = `.s.PGSQL.${port}`
const initdbOutputMax_chars = 64 * 1024

/**
 * Finds the cluster in `data_dir`, or makes it. A new one is made beside its final path and renamed when it is complete and
 * synced, so an interrupted start leaves no partial cluster.
 * @throws EmbeddedPostgresError
 */
export async function prepareCluster(data_dir: string, copy?: CopyCluster): Promise<Cluster> {
  try {
    return await prepare(data_dir, copy)
  } catch (error) {
    if (error instanceof EmbeddedPostgresError) throw error
    const said = error instanceof Error ? error.message : String(error)
    throw new EmbeddedPostgresError(`PostgreSQL cannot use the data folder ${data_dir}: ${said}. ${remedy}`, error)
  }
}

async function prepare(data_dir: string, copy: CopyCluster | undefined): Promise<Cluster> {
  await mkdir(data_dir, { recursive: true, mode: 0o700 })
  const data = await realpath(data_dir)
  const dir = join(data, 'postgres')
  const [binaries, account] = await Promise.all([findBinaries(join(data, 'postgres-libraries')), chooseAccount(dir)])
  if (account) await letPass(data, account)
  const socket_dir = await makeSocketFolder(data, account)
  const cluster = { binaries, account, dir, socket_dir, log_file: join(data, 'postgres.log') }
  if ((await stat(join(dir, 'PG_VERSION')).catch(() => undefined)) === undefined) await initialise(cluster, data, copy)
  await writeAccessRules(dir, account)
  return cluster
}

/**
 * Lets the account pass through the data folder to the cluster, without reading the rest. A folder that is open to a group
 * is left as it is; the account then needs a capability (`launchAs`).
 */
async function letPass(data: string, account: Account): Promise<void> {
  const { uid, mode } = await stat(data)
  if (uid === account.uid || (mode & 0o071) !== 0) return
  await chown(data, uid, account.gid)
  await chmod(data, (mode & 0o7777) | 0o010)
}

/**
 * Makes the folder of the socket, which only the server's account and root may enter; `access-rules.ts` decides who may
 * connect. It is in the data folder, or in `/tmp` if that path would be too long for a socket.
 */
async function makeSocketFolder(data: string, account: Account | undefined): Promise<string> {
  const owner = account?.uid ?? process.getuid?.()
  const inside = join(data, 'socket')
  const fits = Buffer.byteLength(join(inside, socketName)) <= socketPathMax_bytes
  const folder = fits ? inside : `/tmp/cadre-${owner}-${createHash('sha256').update(data).digest('hex').slice(0, 16)}`
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  const { uid, mode } = await lstat(folder)
  if (account && uid === 0) await chown(folder, account.uid, account.gid)
  else if (uid !== owner)
    throw new EmbeddedPostgresError(`${folder} belongs to another account (uid ${uid}). Remove it. ${remedy}`)
  if ((mode & 0o077) !== 0) await chmod(folder, 0o700)
  return folder
}

/** Copies a cluster, or makes it with `initdb`. */
async function initialise(cluster: Cluster, data: string, copy: CopyCluster | undefined): Promise<void> {
  const unfinished = (await readdir(data)).filter((name) => name.startsWith('postgres.new-'))
  for (const name of unfinished) await rm(join(data, name), { recursive: true, force: true, maxRetries: 5 })

  const fresh = join(data, `postgres.new-${randomBytes(6).toString('hex')}`)
  await makeFolder(fresh, cluster)
  const { account } = cluster
  const { initdb } = cluster.binaries
  const run = async (options: string[]): Promise<void> =>
    runToEnd(await launchAs(account, initdb, [`--pgdata=${fresh}`, ...options], [initdb, fresh]), cluster)
  try {
    const copied = await copy?.(fresh, account).catch(() => undefined)
    if (copied === 'written') await run(['--sync-only'])
    if (copied === undefined) {
      // Removes a partial copy.
      await rm(fresh, { recursive: true, force: true })
      await makeFolder(fresh, cluster)
      await run(clusterOptions)
    }
    await rename(fresh, cluster.dir)
    await syncFolder(data)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true }).catch(() => {})
    throw error
  }
}

async function makeFolder(folder: string, { account }: Cluster): Promise<void> {
  await mkdir(folder, { mode: 0o700 })
  if (account) await chown(folder, account.uid, account.gid)
}

async function runToEnd(launch: Launch, cluster: Cluster): Promise<void> {
  const child = spawnLaunch(launch, cluster, ['ignore', 'pipe', 'pipe'])
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-initdbOutputMax_chars)))
  }
  const code = await new Promise<number | string | null>((resolve) => {
    child.on('error', (error) => resolve(spawnError(error, launch)))
    child.on('close', (status, signal) => resolve(status ?? signal))
  })
  if (code === 0) return
  const said = typeof code === 'string' && code.includes(' ') ? code : (lastError(output) ?? `it ended with ${code}`)
  throw new EmbeddedPostgresError(`initdb could not create the database cluster: ${said}. ${remedy}`)
}

/** Spawns a program without this process's environment, which has secrets and perhaps `PG…` variables. */
export function spawnLaunch(
  launch: Launch,
  { binaries }: Cluster,
  stdio: ('ignore' | 'pipe' | number)[],
): ChildProcess {
  const { file, args, uid, gid } = launch
  const libraries = binaries.library_path
  const env = {
    PATH: '/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin',
    LC_ALL: 'C',
    TZ: 'UTC',
    ...(libraries === undefined ? {} : { LD_LIBRARY_PATH: `${libraries}:${join(binaries.root, 'lib')}` }),
  }
  // A separate session: Ctrl-C in a terminal is meant for the service, which stops the server last.
  return spawn(file, args, { uid, gid, env, cwd: '/', stdio, detached: true })
}

/** Why a program could not be spawned. */
export function spawnError(error: NodeJS.ErrnoException, { file, uid }: Launch): string {
  if (error.code === 'ENOENT') return `the program ${file} is missing`
  if (error.code === 'EPERM') return `this process may not change to the account with uid ${uid}`
  return `${file} cannot be started (${error.code})`
}

/** The last error of an output, without its prefix and with its detail; without any, the last line. */
export function lastError(output: string): string | undefined {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const found = lines.findLastIndex((line) => /\b(FATAL|PANIC|error|fatal):/.test(line))
  const fault = lines
    .at(found)
    ?.replace(/^.*?\b(FATAL|PANIC|error|fatal):\s*/, '')
    .replace(/\.$/, '')
  const [, detail] = /\bDETAIL:\s*(.+?)\.?$/.exec(lines[found + 1] ?? '') ?? []
  return found === -1 || detail === undefined ? fault : `${fault} (${detail})`
}
