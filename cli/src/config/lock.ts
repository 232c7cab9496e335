import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CommandFailure } from '../failure.ts'

/** How long to wait for another process. */
const wait_ms = 30_000
/** Age of a stale lock. Work under a lock is limited to a quarter of it. */
const staleAfter_ms = 60_000
const pollInterval_ms = 40

interface Owner {
  pid: number
  host: string
  token: string
}

/**
 * Runs `work` under a lock file, which only one process of this user holds at a time. A lock whose owner has died, or that is
 * a minute old, is taken over. Throws `CommandFailure` if it is not free within 30 s.
 */
export async function locked<T>(path: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const own: Owner = { pid: process.pid, host: hostname(), token: randomUUID() }
  const until = Date.now() + wait_ms
  while (!take(path, own)) {
    clearIfStale(path)
    if (Date.now() > until)
      throw new CommandFailure(
        `Another command holds the lock ${path}.`,
        `delete the file if no other command is running`,
      )
    await pause(pollInterval_ms * (0.5 + Math.random()))
  }
  try {
    return await work()
  } finally {
    // Another process may have taken over the lock meanwhile.
    if (ownerOf(path)?.token === own.token) rmSync(path, { force: true })
  }
}

/** Makes the lock file, unless it exists. */
function take(path: string, own: Owner): boolean {
  try {
    writeFileSync(path, JSON.stringify(own), { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/**
 * Removes a stale lock. It is renamed first, which only one process can do; a process that then finds another lock than it
 * checked renames it back.
 */
function clearIfStale(path: string): void {
  const owner = ownerOf(path)
  if (!isStale(path, owner)) return
  const aside = `${path}.${randomUUID()}`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  if (ownerOf(aside)?.token !== owner?.token) renameSync(aside, path)
  else rmSync(aside, { force: true })
}

function isStale(path: string, owner: Owner | undefined): boolean {
  if (owner?.host === hostname() && !isAlive(owner.pid)) return true
  try {
    return Date.now() - statSync(path).mtimeMs > staleAfter_ms
  } catch {
    return false
  }
}

/** The owner of a lock; undefined if it does not exist or is being written. */
function ownerOf(path: string): Owner | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Owner
  } catch {
    return undefined
  }
}

/** Whether a process of this machine is running. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
