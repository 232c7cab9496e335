import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../../process.ts'
import type { Run } from '../fault.ts'

const library = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1'

/** As libfaketime writes them; the monotonic clock goes on as it is. */
export const clockJumps = ['+3600', '-3600', '+86400', '-86400', '+0 x1.5', '+0 x0.5'] as const

/** Why processes cannot have separate clocks here; undefined where they can. */
export async function whyNoClock(): Promise<string | undefined> {
  return existsSync(library) ? undefined : `${library} is missing: install faketime`
}

/** A wall clock that processes with this environment have, and that can be set. */
export async function makeClock(
  run: Pick<Run, 'atEnd'>,
): Promise<{ env: Record<string, string>; set(jump: string): Promise<void> }> {
  const folder = await temporaryFolder()
  run.atEnd(folder.remove)
  const file = join(folder.path, 'clock')
  const set = (jump: string): Promise<void> => writeFile(file, `${jump}\n`)
  await set('+0')
  const env = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
  return { env, set }
}
