import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'

/** Errors that are put in the place of system calls of processes that run. */
export interface BrokenCalls {
  /** Lets the calls through again, and gives how many failed. */
  heal(): Promise<number>
}

const patience_ms = 20_000

/**
 * From now on `calls` (`fsync,fdatasync`) of these processes, and of those that they start, fail with `error` without being made: by
 * `strace`, which is attached when this resolves.
 */
export async function breakCalls(
  pids: readonly number[],
  calls: string,
  error: string,
  file: string,
): Promise<BrokenCalls> {
  const filters = ['-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`, '-e', 'signal=none']
  const child = spawn('strace', ['-f', ...filters, '-o', file, ...pids.flatMap((pid) => ['-p', String(pid)])], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exited = once(child, 'exit')
  let said = ''
  const attached = new Promise<void>((resolve) =>
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.split(' attached').length > pids.length) resolve()
    }),
  )
  const late = AbortSignal.timeout(patience_ms)
  const ended = await Promise.race([
    attached.then(() => false),
    exited.then(() => true),
    once(late, 'abort').then(() => true),
  ])
  if (ended) {
    child.kill('SIGKILL')
    throw new Error(`strace could not be attached: ${said}`)
  }
  return {
    async heal() {
      child.kill('SIGTERM')
      await exited
      return (await readFile(file, 'utf8')).split('(INJECTED)').length - 1
    },
  }
}

/** A process and its children. */
export async function familyOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  return [pid, ...children.trim().split(' ').filter(Boolean).map(Number)]
}
