import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { link, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { Writable } from 'node:stream'
import { syncFolder } from '../platform/embedded-postgres/data-folder.ts'
import { BackupError } from './backup-error.ts'

/** The output of a backup. After the stream has ended or was destroyed, call `keep` or `discard`. */
export interface Output {
  stream: Writable
  /** Renames the complete archive to its final name. */
  keep(): Promise<void>
  /** Deletes a partial archive. */
  discard(): Promise<void>
}

/** The file for `path`; for a folder, a new file in it that is named after the start time. */
export async function archiveFile(path: string | undefined, now: Date): Promise<string> {
  const name = `cadre-backup-${now.toISOString().replaceAll(':', '-')}.tar.gz`
  if (path === undefined) return resolve(name)
  const isFolder = path.endsWith('/') || (await stat(path).catch(() => undefined))?.isDirectory()
  return isFolder ? resolve(path, name) : resolve(path)
}

/**
 * Opens a file that gets its name once it is complete and synced to disk, readable only by its owner (mode 0600). Until then
 * it is `.<name>.<random>.part` in the same folder, which this process deletes unless it is killed. An existing file, also
 * one that was made meanwhile, is only replaced with `force`.
 * @throws BackupError
 */
export async function openOutputFile(file: string, { force }: { force: boolean }): Promise<Output> {
  if (!force && (await isThere(file))) throw new BackupError(`${file} already exists. Use --force to replace it.`)
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

/** Standard output, for a pipe. If its reader ends, this process exits with 1. */
export function standardOutput(): Output {
  const { stdout } = process
  stdout.prependListener('error', (error: NodeJS.ErrnoException) => {
    process.stderr.write(`Standard output was closed (${error.code}); the archive is incomplete.\n`)
    process.exit(1)
  })
  return {
    // Standard output stays open, because other code uses it too.
    stream: new Writable({ write: (chunk, _encoding, done) => void stdout.write(chunk, done) }),
    keep: async () => {},
    discard: async () => {},
  }
}

/**
 * Renames a file without replacing one: a link, unlike a rename, never replaces. On file systems without links, a file that
 * is made between the check and the rename is replaced.
 */
async function renameToNew(part: string, file: string): Promise<void> {
  try {
    await link(part, file)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code !== 'EEXIST' && !(await isThere(file))) return rename(part, file)
    throw new BackupError(`${file} was made by another process meanwhile. Use --force to replace it.`, error)
  }
}

async function isThere(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined)) !== undefined
}
