import { readFile } from 'node:fs/promises'

const pollInterval_ms = 200

/** The service itself where its launcher was started. */
export async function nodeOf(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).trim().split(' ').filter(Boolean)
  return children.length === 1 ? Number(children[0]) : pid
}

/** Bytes of memory that a process has. */
export async function rssOf(pid: number): Promise<number> {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}

/** What processes have of memory, seen again and again. */
export interface MemoryWatch {
  /** Bytes that each has now. */
  now(): Promise<number[]>
  /** The most that one of them had more than when the watch began. */
  growth(): number
  stop(): Promise<void>
}

/** Begins with processes as they are; `pids` are those of their launchers. */
export async function watchMemory(pids: readonly number[]): Promise<MemoryWatch> {
  const nodes = await Promise.all(pids.map(nodeOf))
  const now = (): Promise<number[]> => Promise.all(nodes.map(rssOf))
  const before = await now()
  let max = 0
  let looking = Promise.resolve()
  const timer = setInterval(() => {
    looking = now().then(
      (bytes) => void (max = Math.max(max, ...bytes.map((one, i) => one - before[i]!))),
      () => {},
    )
  }, pollInterval_ms)
  return {
    now,
    growth: () => max,
    async stop() {
      clearInterval(timer)
      await looking
    },
  }
}
