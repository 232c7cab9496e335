import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { link, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Writable } from 'node:stream'
import { syncFolder } from '../platform/embedded-postgres/data-folder.ts'
import { BackupError } from './backup-error.ts'

/** Where an archive is written to. One of the two functions is called once, after the stream has ended or was destroyed. */
export interface Output {
  stream: Writable
  /** The archive is whole: it gets its name. */
  keep(): Promise<void>
  /** Nothing of it is left behind. */
  discard(): Promise<void>
}

/** The file for `path`: in a folder a new one, named by the start time. */
export async function archiveFile(path: string | undefined, now: Date): Promise<string> {
  const name = `cadre-backup-${now.toISOString().replaceAll(':', '-')}.tar.gz`
  if (path === undefined) return resolve(name)
  const isFolder = path.endsWith('/') || (await stat(path).catch(() => undefined))?.isDirectory()
  return isFolder ? resolve(path, name) : resolve(path)
}

/**
 * Opens a file that gets its name when it is complete and synced to disk, readable by its owner only (mode 0600). Until
 * then it is `.<name>.<random>.part` beside it, which this process removes unless it is killed. An existing file is
 * replaced only with `force`, also one that came meanwhile. Throws `BackupError`.
 */
export async function openOutputFile(file: string, { force }: { force: boolean }): Promise<Output> {
  if (!force && (await isThere(file))) throw new BackupError(`${file} exists already. --force replaces it.`)
  const part = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString('hex')}.part`)
  const handle = await open(part, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
    throw new BackupError(`${dirname(file)} cannot be written to (${error.code}).`, error)
  })
  const onExit = (): void => rmSync(part, { force: true })
  process.once('exit', onExit)
  return {
    stream: handle.createWriteStream({ flush: true }),
    async keep() {
      try {
        if (force) await rename(part, file)
        else await renameToNew(part, file)
        await syncFolder(dirname(file))
      } finally {
        await rm(part, { force: true })
        process.off('exit', onExit)
      }
    },
    async discard() {
      await handle.close().catch(() => {})
      await rm(part, { force: true })
      process.off('exit', onExit)
    },
  }
}

/** Standard output, for a program that takes the archive further. When that goes away, this process ends with 1. */
export function standardOutput(): Output {
  const { stdout } = process
  stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    process.stderr.write(`Standard output takes no more (${error.code}): the archive is not whole.\n`)
    process.exit(1)
  })
  return {
    // Standard output stays open: it is not ours alone.
    stream: new Writable({ write: (chunk, _encoding, done) => void stdout.write(chunk, done) }),
    keep: async () => {},
    discard: async () => {},
  }
}

/** Linking, unlike renaming, never replaces. Where the file system has no links, the moment between the two is a risk. */
async function renameToNew(part: string, file: string): Promise<void> {
  try {
    await link(part, file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'EEXIST' && !(await isThere(file))) return rename(part, file)
    throw new BackupError(`${file} came to exist meanwhile. --force replaces it.`, error)
  }
}

async function isThere(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined)) !== undefined
}
