import { randomBytes } from 'node:crypto'
import { chmod, link, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { secretKeyLengthMin } from '../crypto/secrets.ts'

/** The folder of one installation: embedded database, generated secrets. Readable by its owner only. */
export interface DataFolder {
  /** Absolute, without symbolic links. */
  path: string
  /** The key that is kept in `secret.key` (mode 0600): 32 random bytes as base64, made by the first call ever. */
  secretKey(): Promise<string>
  /** Keeps a key that comes from elsewhere as `secret.key`. Throws where there is another one. */
  keepSecretKey(key: string): Promise<void>
  /** Keeps what the first start generated in `credentials.json` (mode 0600, decision D69); gives the file's path. */
  writeCredentials(credentials: Readonly<Record<string, unknown>>): Promise<string>
  /** Releases the folder for another process. */
  close(): Promise<void>
}

/** The folder cannot be used; the message says why and what to do, in a line. */
export class DataFolderError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'DataFolderError'
  }
}

/** Another process has the folder for itself. */
export class DataFolderInUse extends DataFolderError {}

/**
 * Opens the folder, made where it is missing (mode 0700). `exclusive`: only one process at a time, which the embedded
 * database needs; others get a `DataFolderInUse` that names the one. Processes that share a database through
 * `DATABASE_URL` may share a folder too.
 */
export async function openDataFolder(path: string, { exclusive = true } = {}): Promise<DataFolder> {
  const folder = await makeFolder(path)
  const lock = exclusive ? await lockFolder(folder) : undefined
  return {
    path: folder,
    secretKey: () => readOrMakeKey(folder),
    keepSecretKey: async (key) => {
      if ((await readOrMakeKey(folder, key)) !== key)
        throw new DataFolderError(`${join(folder, keyName)} holds another key.`)
    },
    writeCredentials: async (credentials) => {
      const file = join(folder, 'credentials.json')
      const written = await writeBeside(file, `${JSON.stringify(credentials, null, 2)}\n`)
      await rename(written, file)
      await syncFolder(folder)
      return file
    },
    close: async () => {
      if (!lock) return
      await rm(join(folder, 'service.json'), { force: true })
      lock.close()
    },
  }
}

async function makeFolder(path: string): Promise<string> {
  try {
    await mkdir(dirname(path), { recursive: true })
    await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error
    })
    const folder = await realpath(path)
    const { mode } = await stat(folder)
    // A group may be allowed to pass through: PostgreSQL has a separate account where the service is root.
    if ((mode & 0o067) !== 0 && (await isOurs(folder))) await chmod(folder, mode & 0o710)
    return folder
  } catch (error) {
    throw new DataFolderError(
      `The data folder ${path} cannot be used (${codeOf(error)}). CADRE_DATA_DIR names another.`,
      error,
    )
  }
}

/** A folder with other things in it keeps its mode: closing `/tmp` or a home would harm others. Our files have theirs. */
async function isOurs(folder: string): Promise<boolean> {
  const names = (await readdir(folder)).filter((name) => name !== 'lost+found')
  return names.length === 0 || names.includes(lockName)
}

const lockName = 'service.lock'

/**
 * The lock is the kernel's (`fcntl`, by way of SQLite, which Node has built in): it ends with the process however that
 * ends, so it is never stale, whatever became of the process id, and containers that share the folder see it too.
 */
async function lockFolder(folder: string): Promise<DatabaseSync> {
  const owner = join(folder, 'service.json')
  await makeLockFile(join(folder, lockName))
  const lock = openLock(folder)
  try {
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    const isTaken = error instanceof Error && 'errcode' in error && error.errcode === sqliteBusy
    if (!isTaken) throw new DataFolderError(`The data folder ${folder} cannot be locked: ${String(error)}.`, error)
    throw new DataFolderInUse(
      `The data folder ${folder} is in use by ${await describeOwner(owner)}. Stop that, or choose another folder by ` +
        'CADRE_DATA_DIR. (Several processes can share a PostgreSQL by DATABASE_URL.)',
    )
  }
  const self = {
    pid: process.pid,
    host: hostname(),
    started_at: new Date(Date.now() - process.uptime() * 1000).toISOString(),
  }
  await rename(await writeBeside(owner, `${JSON.stringify(self)}\n`), owner)
  return lock
}

/** SQLite would make it readable by all. A file that is there is not opened: closing it would end a lock of this process. */
async function makeLockFile(path: string): Promise<void> {
  await open(path, 'wx', 0o600).then(
    (file) => file.close(),
    async () => chmod(path, 0o600).catch(() => {}),
  )
}

const sqliteBusy = 5

function openLock(folder: string): DatabaseSync {
  try {
    return new DatabaseSync(join(folder, lockName), { timeout: 0 })
  } catch (error) {
    throw new DataFolderError(`The data folder ${folder} cannot be written to: ${String(error)}.`, error)
  }
}

async function describeOwner(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const [, pid, host, started_at] = /^{"pid":(\d+),"host":"([^"]*)","started_at":"([^"]*)"}/.exec(text) ?? []
  if (pid === undefined) return 'another process'
  return `process ${pid}${host === hostname() ? '' : ` on ${host}`}, which started at ${started_at}`
}

/** The key that the folder at `path` keeps; undefined where it has none, or is not there. Nothing is made. */
export function findSecretKey(path: string): Promise<string | undefined> {
  return readKey(join(path, keyName))
}

const keyName = 'secret.key'

async function readOrMakeKey(folder: string, made = randomBytes(32).toString('base64')): Promise<string> {
  const file = join(folder, keyName)
  const existing = await readKey(file)
  if (existing !== undefined) return existing
  // Linking, unlike renaming, never replaces: of two processes at once, both end up with the key of the first.
  const written = await writeBeside(file, `${made}\n`)
  await link(written, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(written)
  await syncFolder(folder)
  const stored = await readKey(file)
  if (stored === undefined) throw new DataFolderError(`${file} vanished while it was made.`)
  return stored
}

/** Never replaced when it is damaged: everything that was encrypted with it would be lost. */
async function readKey(file: string): Promise<string | undefined> {
  try {
    const key = (await readFile(file, 'utf8')).trim()
    if (key.length < secretKeyLengthMin) {
      throw new DataFolderError(
        `${file} holds no key of ${secretKeyLengthMin} characters. Put it back from a backup, or set CADRE_SECRET_KEY.`,
      )
    }
    await chmod(file, 0o600)
    return key
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    if (error instanceof DataFolderError) throw error
    throw new DataFolderError(`${file} cannot be read (${codeOf(error)}).`, error)
  }
}

/** Writes a new file next to `file`, readable by its owner only and synced to disk; returns its path. */
async function writeBeside(file: string, text: string): Promise<string> {
  const path = `${file}.${randomBytes(6).toString('hex')}.new`
  const handle = await open(path, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  return path
}

/** After this, the names of files in the folder survive a power cut as well. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error)
}
