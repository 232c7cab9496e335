import { execFile } from 'node:child_process'
import { mkdtemp, open, rm, rmdir, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const mebibyte = 1024 * 1024

/** A disk of a fixed size, in memory, that can be filled. */
export interface SmallDisk {
  path: string
  /** Fills it until so much of it is used, or to its end. */
  fillTo(share?: number): Promise<void>
  /** Frees the space that was taken. */
  free(): Promise<void>
  remove(): Promise<void>
}

/** Why no disk can be made here; undefined where one can. */
export async function whyNoDisk(): Promise<string | undefined> {
  try {
    const disk = await makeSmallDisk(mebibyte)
    await disk.remove()
    return undefined
  } catch (error) {
    return `a tmpfs cannot be mounted here (${String(error).trim().split('\n').at(-1)}): run it as root`
  }
}

export async function makeSmallDisk(bytes: number): Promise<SmallDisk> {
  const path = await mkdtemp(join(tmpdir(), 'cadre-disk-'))
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=0711`, 'cadre-fault', path])
  } catch (error) {
    await rmdir(path)
    throw error
  }
  const filler = join(path, 'filler')
  return {
    path,
    async fillTo(share = 1) {
      const file = await open(filler, 'a')
      const chunk = Buffer.alloc(mebibyte / 16)
      try {
        for (;;) {
          const { blocks, bfree } = await statfs(path)
          if (share < 1 && 1 - bfree / blocks >= share) return
          const { bytesWritten } = await file.write(chunk)
          if (bytesWritten < chunk.length) return
        }
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOSPC')) throw error
      } finally {
        await file.close()
      }
    },
    free: () => rm(filler, { force: true }),
    async remove() {
      // A process that has just ended may hold it for a moment; a lazy unmount hides it from all others at once.
      await run('umount', ['-l', path])
      await rmdir(path)
    },
  }
}
