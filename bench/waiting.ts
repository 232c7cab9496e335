import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { Agent, request } from 'undici'
import { startProcess, type RunningService } from '../e2e/process.ts'
import { startEmbeddedPostgres } from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { databaseUrl } from '../server/test/postgres.ts'
import { machine, percentile } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * What waiting costs two processes on one database: tasks that wait for a worker of their owner's (memory, timers and sockets of a
 * process; 3 minutes), claims that wait for a task (share of a core), and how soon a task comes to a claim that waits
 * for it. Needs Linux.
 *
 *     node bench/waiting.ts --tasks 10000 --rounds 2 --rest 30 --claimers 1000 --seconds 20
 *     node bench/waiting.ts --only pickups
 */
const values = readOptions({
  tasks: { type: 'string', default: '10000' },
  rounds: { type: 'string', default: '2' },
  /** Seconds between what happened and a look at the heap, also where nothing happened. */
  rest: { type: 'string', default: '30' },
  claimers: { type: 'string', default: '1000' },
  seconds: { type: 'string', default: '20' },
  pickups: { type: 'string', default: '200' },
  only: { type: 'string', default: 'tasks,claims,pickups' },
})
const sizes = [values.tasks, values.rounds, values.rest, values.claimers, values.seconds, values.pickups]
const [tasks, rounds, rest_s, claimers, seconds, pickups] = sizes.map(Number) as [
  number,
  number,
  number,
  number,
  number,
  number,
]
const parts = new Set(values.only.split(','))
const batchMax = 1000
/** How long a claim of the SDK waits. */
const wait_s = 30
/** Ticks of the kernel's accounts in a second. */
const ticks = 100

const key = 'cadre_00112233445566778899aabbccddeeff'
const headers = { 'x-api-key': key, 'content-type': 'application/json' }
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const postgres = await startEmbeddedPostgres({ data_dir: folder, log: pino({ level: 'warn' }) })
const env = {
  DATABASE_URL: databaseUrl(postgres.connection),
  CADRE_SECRET_KEY: 'a secret key for benches, 32 characters',
  CADRE_DATA_DIR: folder,
  CADRE_ADMIN_API_KEY: key,
  CADRE_RATE_LIMITS_SCALE: '1000000',
  NODE_OPTIONS: `--import=${new URL('./parts/live-heap.ts', import.meta.url).href}`,
}
const services: RunningService[] = []
const dispatcher = new Agent({ connections: claimers + 10, headersTimeout: 0, bodyTimeout: 0 })
try {
  for (let i = 0; i < 2; i++) services.push(await startProcess(env))
  console.log(`${new Date().toISOString()}, ${machine()}.\n`)
  const project = `/api/v1/projects/${(await ask<{ id: number }>('/api/v1/projects', { name: 'waiting' })).id}`
  if (parts.has('tasks')) await measureTasks(project)
  if (parts.has('claims')) await measureClaims(project)
  if (parts.has('pickups')) await measurePickups(project)
} finally {
  await dispatcher.destroy()
  for (const service of services) await service.end()
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}

/**
 * What a process holds more for tasks that wait, once it has dropped what it keeps for moments. Each look comes after a full collection
 * and the same rest; a look after a rest alone tells what a process gains meanwhile without any task.
 */
async function measureTasks(project: string): Promise<void> {
  const look = async () => {
    await settle()
    await delay(rest_s * 1000)
    return Promise.all(services.map(live))
  }
  // The first ones load what all need, and compile it.
  await giveAll(project, 'first')
  const looks = [await look(), await look()]
  for (let round = 1; round <= rounds; round++) {
    await giveAll(project, `many-${round}`)
    looks.push(await look())
  }
  console.log(`Heap of a process after ${tasks} more waiting tasks and ${rest_s} s, in KB for each 1,000 tasks:\n`)
  console.log('| | growth | growth in the same time without tasks | Timers, first and last | Sockets, first and last |')
  console.log('|---|---|---|---|---|')
  services.forEach((_, i) => {
    const all = looks.map((of) => of[i]!)
    const [idle = 0, ...kb] = all.slice(1).map(({ bytes }, at) => ((bytes - all[at]!.bytes) / 1024 / tasks) * 1000)
    const [first, last] = [all[0]!, all.at(-1)!]
    const cells = [
      `process ${i + 1}`,
      kb.map((one) => one.toFixed(1)).join(', '),
      idle.toFixed(1),
      `${first.timers}, ${last.timers}`,
      `${first.sockets}, ${last.sockets}`,
    ]
    console.log(`| ${cells.join(' | ')} |`)
  })
}

/** An agent with so many tasks that wait for a worker. */
async function giveAll(project: string, queue: string): Promise<string> {
  // An agent has 10,000 open tasks at most.
  const agent = await makeAgent(project, queue)
  for (let made = 0; made < tasks; made += batchMax) await give(project, agent, Math.min(batchMax, tasks - made))
  await untilTotal(project, agent, tasks)
  return agent
}

/** Waits until so many tasks of an agent wait. */
async function untilTotal(project: string, agent: string, count: number): Promise<void> {
  for (;;) {
    const { statusCode, body } = await request(
      `${services[0]!.url}${project}/agents/${agent}/tasks?status=waiting&limit=1`,
      { dispatcher, headers },
    )
    const text = await body.text()
    assert.equal(statusCode, 200, text)
    if ((JSON.parse(text) as { pagination: { total: number } }).pagination.total === count) return
    await delay(200)
  }
}

async function measureClaims(project: string): Promise<void> {
  const idle_s = await cpuSeconds(seconds)
  const stop = new AbortController()
  // As workers do: each asks again when its wait is over, and they began at different times.
  const waiting = async (i: number): Promise<void> => {
    await delay((i / claimers) * wait_s * 1000)
    while (!stop.signal.aborted)
      await claim(project, services[i % services.length]!, `empty-${i % 10}`, wait_s, stop.signal).catch(() => {})
  }
  const all = Array.from({ length: claimers }, (_, i) => waiting(i))
  await delay(wait_s * 1000)
  const waiting_s = await cpuSeconds(seconds)
  stop.abort()
  await Promise.all(all)
  const share = (used: number): string => `${((used / seconds) * 100).toFixed(1)} %`
  console.log(
    `\n${claimers} idle claims: ${share(waiting_s)} of a core in both processes, ${share(idle_s)} without claims.`,
  )
}

async function measurePickups(project: string): Promise<void> {
  const agent = await makeAgent(project, 'picked-up')
  const took_ms: number[] = []
  const read_ms: number[] = []
  for (let i = 0; i < pickups; i++) {
    const service = services[i % services.length]!
    // A request of one statement at the same moment tells how busy the machine is.
    const began_at = performance.now()
    await (await request(`${service.url}${project}`, { dispatcher, headers })).body.dump()
    read_ms.push(performance.now() - began_at)
    const claimed = claim(project, service, 'picked-up', 30).then((work) => ({ work, at: performance.now() }))
    // The claim is in line.
    await delay(20)
    let answered = 0
    const given = ask(`${project}/agents/${agent}/tasks`, { input: 'x' }).then(
      () => void (answered = performance.now()),
    )
    const { work, at } = await claimed
    await given
    // From the answer to the one who gave it: the commit is just before that.
    took_ms.push(Math.max(0, at - answered))
    const { token } = work!.lease
    const { statusCode, body } = await request(`${service.url}${project}/work/complete`, {
      ...{ dispatcher, method: 'POST' as const, body: JSON.stringify({ output: { content: 'x' } }) },
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    })
    await body.dump()
    assert.equal(statusCode, 200)
  }
  const [p50, p99, read] = [percentile(took_ms, 0.5), percentile(took_ms, 0.99), percentile(read_ms, 0.5)]
  console.log(
    `\nFrom the answer of a creation to the claim that waited: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${pickups} tasks); a read in turns with it: p50 ${read.toFixed(1)} ms, so ${(p50 / read).toFixed(1)} reads.`,
  )
}

async function makeAgent(project: string, queue: string): Promise<string> {
  const config = { model: 'builtin/echo', runtime: { kind: 'remote', queue } }
  return (await ask<{ id: string }>(`${project}/agents`, { name: queue, config })).id
}

async function give(project: string, agent: string, count: number): Promise<void> {
  await ask(`${project}/agents/${agent}/tasks/batch`, { tasks: Array.from({ length: count }, () => ({ input: 'x' })) })
}

async function claim(project: string, { url }: RunningService, queue: string, wait: number, signal?: AbortSignal) {
  const { statusCode, body } = await request(`${url}${project}/work/claim`, {
    ...{ dispatcher, method: 'POST', headers, signal: signal ?? null },
    body: JSON.stringify({ queues: [queue], wait }),
  })
  if (statusCode === 204) return void (await body.dump())
  assert.equal(statusCode, 200, await (statusCode === 200 ? '' : body.text()))
  return ((await body.json()) as { work: { lease: { token: string } } }).work
}

async function ask<T>(path: string, sent: object): Promise<T> {
  const { statusCode, body } = await request(`${services[0]!.url}${path}`, {
    ...{ dispatcher, method: 'POST', headers, body: JSON.stringify(sent) },
  })
  const text = await body.text()
  assert.ok(statusCode < 300, `${path}: ${statusCode} ${text.slice(0, 500)}`)
  return JSON.parse(text) as T
}

/** What came in is worked off. */
async function settle(): Promise<void> {
  for (let before = Infinity; ;) {
    const used = await cpuSeconds(1)
    if (used > before * 0.7) return
    before = used
  }
}

/** What a process holds after a collection. */
async function live({ process, output }: RunningService) {
  const from = output().length
  process.kill('SIGUSR2')
  for (;;) {
    const said = /live heap ([\d.]+) \+ ([\d.]+) MB, (\d+) timers, (\d+) sockets/.exec(output().slice(from))
    if (said) {
      const [heap, external, timers, sockets] = said.slice(1).map(Number) as [number, number, number, number]
      return { bytes: (heap + external) * 2 ** 20, timers, sockets }
    }
    await delay(10)
  }
}

/** Processor time of both processes in so many seconds. */
async function cpuSeconds(duration_s: number): Promise<number> {
  const read = async (): Promise<number> => {
    const all = await Promise.all(services.map(({ process }) => readFile(`/proc/${process.pid}/stat`, 'utf8')))
    return all.reduce((sum, stat) => {
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return sum + Number(fields[11]) + Number(fields[12])
    }, 0)
  }
  const before = await read()
  await delay(duration_s * 1000)
  return ((await read()) - before) / ticks
}
