import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Linux keeps this folder in memory. */
const memoryFolder = '/dev/shm'

/** What a run may fill, in bytes: databases, browser profiles, installations. */
const needed_bytes = 6 * 1024 ** 3

/** Memory that must be free beside it for the tests themselves, in bytes. */
const beside_bytes = 4 * 1024 ** 3

/**
 * A new folder for everything temporary of a run, and its removal. It is in memory where that is large enough and may hold
 * programs: a database of tests is 1,500 files, and making one takes a tenth of the time that it takes on a disk. Where it
 * is not, the folder is in the system's temporary folder.
 */
export async function makeTemporaryFolder(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = (await inMemory()) ?? (await mkdtemp(join(tmpdir(), 'cadre-run-')))
  // Like the system's: services that root starts run their database as another account.
  await chmod(path, 0o1777)
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 3 }) }
}

async function inMemory(): Promise<string | undefined> {
  try {
    const { bavail, bsize } = await statfs(memoryFolder)
    if (bavail * bsize < needed_bytes || freemem() < needed_bytes + beside_bytes) return undefined
    const path = await mkdtemp(join(memoryFolder, 'cadre-run-'))
    if (await runsPrograms(path)) return path
    await rm(path, { recursive: true, force: true })
    return undefined
  } catch {
    return undefined
  }
}

/** Containers often forbid programs in their memory; tests of installations start some there. */
async function runsPrograms(folder: string): Promise<boolean> {
  const program = join(folder, 'program')
  await writeFile(program, '#!/bin/sh\n')
  await chmod(program, 0o700)
  try {
    await promisify(execFile)(program)
    return true
  } catch {
    return false
  } finally {
    await rm(program)
  }
}
