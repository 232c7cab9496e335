import { randomBytes } from 'node:crypto'
import { chmod, link, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { secretKeyLengthMin } from '../crypto/secrets.ts'

/** The data folder of an installation, with the embedded database and generated secrets. Only its owner can read it. */
export interface DataFolder {
  /** Absolute, without symbolic links. */
  path: string
  /** The key in `secret.key` (mode 0600): 32 random bytes as base64, made by the first call. */
  secretKey(): Promise<string>
  /** Stores an existing key as `secret.key`. Throws if the file has another key. */
  keepSecretKey(key: string): Promise<void>
  /** Writes the credentials of the first start to `credentials.json` (mode 0600, decision D69); returns the file's path. */
  writeCredentials(credentials: Readonly<Record<string, unknown>>): Promise<string>
  /** Releases the folder for another process. */
  close(): Promise<void>
}

/** The folder cannot be used; the message is one line with the reason and what to do. */
export class DataFolderError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'DataFolderError'
  }
}

/** Another process has locked the folder. */
export class DataFolderInUse extends DataFolderError {}

/**
 * Opens the folder; makes it with mode 0700 if it is missing. With `exclusive`, which the embedded database needs, it is
 * locked, and other processes get a `DataFolderInUse` that names the owner. Processes that share a database by
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
        throw new DataFolderError(`${join(folder, keyName)} has another key.`)
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
    // A group may pass through the folder: if the service is root, PostgreSQL has a separate account.
    if ((mode & 0o067) !== 0 && (await isOurs(folder))) await chmod(folder, mode & 0o710)
    return folder
  } catch (error) {
    throw new DataFolderError(
      `The data folder ${path} cannot be used (${codeOf(error)}). Set CADRE_DATA_DIR to choose another.`,
      error,
    )
  }
}

/**
 * Whether the folder is empty or Cadre's. Any other folder keeps its mode: closing `/tmp` or a home folder would harm
 * others. Files of Cadre have safe modes anyway.
 */
async function isOurs(folder: string): Promise<boolean> {
  const names = (await readdir(folder)).filter((name) => name !== 'lost+found')
  return names.length === 0 || names.includes(lockName)
}

const lockName = 'service.lock'

/**
 * Locks the folder by a lock of the kernel (`fcntl`, through Node's SQLite). It ends with the process, however that ends,
 * so it is never stale, and containers that share the folder see it too.
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
      `The data folder ${folder} is in use by ${await describeOwner(owner)}. Stop that process, or set CADRE_DATA_DIR to choose another folder. ` +
        '(Several processes can share a PostgreSQL with DATABASE_URL.)',
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

/**
 * Makes the lock file with mode 0600; SQLite would make it readable by all. An existing file is not opened, because
 * closing it would release a lock of this process.
 */
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

/** The key in the folder at `path`; undefined if the folder or the key does not exist. Makes nothing. */
export function findSecretKey(path: string): Promise<string | undefined> {
  return readKey(join(path, keyName))
}

const keyName = 'secret.key'

async function readOrMakeKey(folder: string, made = randomBytes(32).toString('base64')): Promise<string> {
  const file = join(folder, keyName)
  const existing = await readKey(file)
  if (existing !== undefined) return existing
  // A link, unlike a rename, never replaces a file: two concurrent processes both get the key of the first.
  const written = await writeBeside(file, `${made}\n`)
  await link(written, file).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(written)
  await syncFolder(folder)
  const stored = await readKey(file)
  if (stored === undefined) throw new DataFolderError(`${file} disappeared while it was written. Start again.`)
  return stored
}

/** Reads the key. A damaged file is an error and never replaced, or everything encrypted with its key would be lost. */
async function readKey(file: string): Promise<string | undefined> {
  try {
    const key = (await readFile(file, 'utf8')).trim()
    if (key.length < secretKeyLengthMin) {
      throw new DataFolderError(
        `${file} has fewer than ${secretKeyLengthMin} characters, so it is not a key. Restore it from a backup, or set CADRE_SECRET_KEY.`,
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

/** Writes a new file beside `file`, readable only by its owner and synced to disk; returns its path. */
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

/** Syncs the entries of a folder, so that created and renamed files survive a power cut. */
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
