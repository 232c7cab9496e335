import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { CommandFailure } from './failure.ts'

/** A lock whose holder took longer was left behind by one that was killed. */
const stale_ms = 60_000
/** How long somebody waits for a lock. */
const wait_ms = 90_000
const look_ms = 50

/**
 * Does work that no other process of this user does meanwhile: who comes first makes the file `path`, and removes it at its end.
 * Throws `CommandFailure` after a wait of 90 s.
 */
export async function locked<T>(path: string, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const end = Date.now() + wait_ms
  while (!take(path)) {
    if (Date.now() > end) throw new CommandFailure(`Another command holds ${path}.`, `rm ${path}`)
    await pause(look_ms)
  }
  try {
    return await work()
  } finally {
    rmSync(path, { force: true })
  }
}

function take(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600))
    return true
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error
  }
  try {
    if (Date.now() - statSync(path).mtimeMs > stale_ms) rmSync(path, { force: true })
  } catch (error) {
    // It was given back in this moment.
    if (!isCode(error, 'ENOENT')) throw error
  }
  return false
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}
