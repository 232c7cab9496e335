import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startProcess } from '../e2e/process.ts'
import { machine, percentile } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * Whether the memory of a service grows under a load that does not: resident memory of its process, every few seconds, while tasks are
 * created, waited for, streamed and listed, agents are made and removed, and logs and metrics are read, at a fixed rate. The
 * median of the minute after the warm-up (a fifth of the time) is compared with that of the last minute. What the heap holds after
 * a full collection is read at the same two moments and in the middle: resident memory goes up and down with the collector, this
 * does not. Needs Linux.
 *
 *     node bench/soak.ts --minutes 30 --rate 20
 */
const values = readOptions({ minutes: { type: 'string', default: '30' }, rate: { type: 'string', default: '20' } })
const [minutes, rate] = [Number(values.minutes), Number(values.rate)]
const sample_ms = 2000
/** Requests that may be open at once: where the service is slower than the rate, it is asked less. */
const openMax = 16

const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const service = await startProcess({
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '1000000',
  NODE_OPTIONS: `--import=${new URL('./parts/live-heap.ts', import.meta.url).href}`,
})
try {
  console.log(`${new Date().toISOString()}, ${machine()}.`)
  const { id: project } = await ask<{ id: number }>('POST', '/api/v1/projects', { name: 'soak' })
  const agents = `/api/v1/projects/${project}/agents`
  const { id: agent } = await ask<{ id: string }>('POST', agents, { name: 'echo', config: { model: 'builtin/echo' } })
  const one = `${agents}/${agent}`
  const newTask = () => ask<{ id: string }>('POST', `${one}/tasks?wait=10`, { input: 'x'.repeat(500) })
  let made = 0
  const works: (() => Promise<unknown>)[] = [
    newTask,
    newTask,
    newTask,
    async () => {
      const { id } = await ask<{ id: string }>('POST', `${one}/tasks`, { input: 'streamed' })
      return ask('GET', `/api/v1/projects/${project}/tasks/${id}/events/stream`)
    },
    () => ask('GET', one),
    () => ask('GET', `${agents}?limit=20`),
    () => ask('GET', `${one}/tasks?limit=20`),
    () => ask('GET', `${one}/logs?limit=20`),
    () => ask('GET', `${one}/metrics?interval=1m`),
    async () => {
      const { id } = await ask<{ id: string }>('POST', agents, {
        name: `a${made++}`,
        config: { model: 'builtin/echo' },
      })
      return ask('DELETE', `${agents}/${id}`)
    },
  ]

  const began = performance.now()
  const samples: { minute: number; mb: number }[] = []
  const failures = new Map<string, number>()
  const heaps: { minute: number; heap_mb: number; external_mb: number }[] = []
  const heapsDue = [minutes / 5, (minutes * 3) / 5, minutes - 1]
  let [asked, open, next] = [0, 0, 0]
  for (;;) {
    const minute = (performance.now() - began) / 60_000
    if (minute >= minutes) break
    if (minute * 60_000 >= next) {
      next += sample_ms
      samples.push({ minute, mb: await resident(service.process.pid!) })
    }
    if (minute >= (heapsDue[0] ?? Infinity)) heaps.push({ minute: heapsDue.shift()!, ...(await liveHeap()) })
    if (open < openMax) {
      open++
      const work = works[asked++ % works.length]!
      void work()
        .catch((error: unknown) => failures.set(String(error), (failures.get(String(error)) ?? 0) + 1))
        .finally(() => open--)
    }
    await delay(1000 / rate)
  }

  const median = (from: number, to: number): number =>
    percentile(
      samples.filter(({ minute }) => minute >= from && minute < to).map(({ mb }) => mb),
      0.5,
    )
  const warm = minutes / 5
  const [first, last] = [median(warm, warm + 1), median(minutes - 1, minutes)]
  console.log(`${asked} rounds in ${minutes} minutes, ${[...failures.values()].reduce((sum, n) => sum + n, 0)} failed.`)
  for (const [text, n] of failures) console.log(`  ${n} times: ${text}`)
  console.log('\n| Minute | resident, MB |\n|---|---|')
  const step = Math.max(1, Math.round(minutes / 10))
  for (let minute = 0; minute < minutes; minute += step)
    console.log(`| ${minute} | ${median(minute, minute + 1).toFixed(0)} |`)
  console.log(
    `\nAfter the warm-up ${first.toFixed(1)} MB, in the last minute ${last.toFixed(1)} MB: ${(last / first).toFixed(3)} times.`,
  )
  console.log('\n| Minute | heap after a full collection, MB | outside it, MB |\n|---|---|---|')
  for (const { minute, heap_mb, external_mb } of heaps)
    console.log(`| ${minute.toFixed(1)} | ${heap_mb} | ${external_mb} |`)
  console.log(`\n${machine()}.`)
} finally {
  await service.end()
  await rm(folder, { recursive: true, force: true })
}

async function ask<T = unknown>(method: string, path: string, body?: object): Promise<T> {
  const answer = await fetch(service.url + path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  })
  const text = await answer.text()
  assert.ok(answer.status < 300, `${method} ${path.replaceAll(/_[0-9a-z]{20,}/g, '_…')}: ${answer.status}`)
  return (answer.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text) as T
}

async function liveHeap(): Promise<{ heap_mb: number; external_mb: number }> {
  const before = service.output().length
  service.process.kill('SIGUSR2')
  for (let waited_ms = 0; waited_ms < 10_000; waited_ms += 50) {
    const received = /live heap ([\d.]+) \+ ([\d.]+) MB/.exec(service.output().slice(before))
    if (received) return { heap_mb: Number(received[1]), external_mb: Number(received[2]) }
    await delay(50)
  }
  throw new Error('the service did not tell its heap')
}

async function resident(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
}
