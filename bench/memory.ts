import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startProcess } from '../e2e/process.ts'
import { machine } from './figures.ts'

/**
 * How much memory an idle service takes with its embedded PostgreSQL: the whole tree of processes, half a minute after it is
 * ready. Pages that several processes share are divided among them (PSS), so that each is counted once. Needs Linux.
 */
const idle_ms = 30_000
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const service = await startProcess({ CADRE_DATA_DIR: folder })
try {
  await delay(idle_ms)
  const all = await readProcesses()
  const tree = [service.process.pid!]
  for (const pid of tree) tree.push(...all.filter(({ parent }) => parent === pid).map((child) => child.pid))
  // PostgreSQL has its own parent: it outlives a service that is killed.
  const postgres = all.filter(({ command }) => command.includes(folder)).map(({ pid }) => pid)
  for (const pid of postgres) tree.push(pid, ...all.filter(({ parent }) => parent === pid).map((child) => child.pid))
  const used = await Promise.all(
    [...new Set(tree)].map(async (pid) => ({ ...all.find((of) => of.pid === pid)!, mb: await megabytes(pid) })),
  )
  const isNode = ({ command }: { command: string }): boolean => command.includes('node')
  const sum = (of: typeof used): string => of.reduce((mb, one) => mb + one.mb, 0).toFixed(0)
  console.log(`${machine()}.

| Idle | processes | MB |
|---|---|---|
| Node | ${used.filter(isNode).length} | ${sum(used.filter(isNode))} |
| PostgreSQL | ${used.filter((one) => !isNode(one)).length} | ${sum(used.filter((one) => !isNode(one)))} |
| All | ${used.length} | ${sum(used)} |`)
} finally {
  await service.end()
  await rm(folder, { recursive: true, force: true })
}

async function readProcesses(): Promise<{ pid: number; parent: number; command: string }[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const read = pids.map(async (pid) => {
    const [stat, command] = await Promise.all(
      ['stat', 'cmdline'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')),
    )
    const parent = Number(stat!.slice(stat!.lastIndexOf(')') + 2).split(' ')[1])
    return { pid: Number(pid), parent, command: command!.replaceAll('\0', ' ') }
  })
  return Promise.all(read)
}

async function megabytes(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8').catch(() => '')
  return Number(/^Pss: +(\d+) kB/m.exec(text)?.[1] ?? 0) / 1024
}
